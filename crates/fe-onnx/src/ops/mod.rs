//! The rules, one file a family. Each file has its table in front: operation, first version, translator.

use carafe_frontend::StaticRule;

mod attend;
mod forest;
mod kv_cache;
mod recurrent_steps;
mod resize_axis;
mod roi_align_max;
mod search_beams;
mod search_loop;
mod search_scores;
mod shapes;
mod svm_probability;
mod volume_sample;

macro_rules! families {
    ($($family:ident),* $(,)?) => {
        $(mod $family;)*
        /// Every built-in rule.
        pub(crate) fn all() -> Vec<StaticRule> {
            [$($family::RULES),*].concat()
        }
    };
}

families! {
    activation,
    aten,
    attention,
    casts,
    constants,
    contrib,
    contrib_attention,
    contrib_gather,
    contrib_group_query,
    contrib_multi_head,
    contrib_nhwc,
    contrib_products,
    contrib_quantized,
    contrib_sampling,
    contrib_tokens,
    control,
    convolution,
    elementwise,
    flex_attention,
    images,
    indexing,
    legacy,
    linear,
    linear_attention,
    logic,
    losses,
    ml,
    ml_labels,
    ml_svm,
    ml_trees,
    mmdeploy,
    movement,
    normalization,
    optional,
    own_domain,
    pooling,
    quantized,
    random,
    recurrent,
    reduce,
    resize,
    scan,
    search,
    sequence,
    sequence_map,
    signal,
    slicing,
    strings,
    vision,
}
