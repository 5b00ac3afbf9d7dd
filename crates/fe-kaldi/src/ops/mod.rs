//! The rules, one file a family. Each file has its table in front: component, version, translator.

use carafe_frontend::StaticRule;

mod cx;

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
    affine,
    attention,
    columns,
    convolution,
    elementwise,
    memory,
    normalization,
    pooling,
    recurrent,
    statistics,
    time,
}

/// Components of nnet2 and nnet3.
pub(crate) const KALDI_COMPONENTS: &[&str] = &[
    "AdditiveNoiseComponent",
    "AffineComponent",
    "AffineComponentPreconditioned",
    "AffineComponentPreconditionedOnline",
    "BackpropTruncationComponent",
    "BatchNormComponent",
    "BlockAffineComponent",
    "BlockAffineComponentPreconditioned",
    "ClipGradientComponent",
    "CompositeComponent",
    "ConstantComponent",
    "ConstantFunctionComponent",
    "ConvolutionComponent",
    "Convolutional1dComponent",
    "DctComponent",
    "DistributeComponent",
    "DropoutComponent",
    "DropoutMaskComponent",
    "ElementwiseProductComponent",
    "FixedAffineComponent",
    "FixedBiasComponent",
    "FixedLinearComponent",
    "FixedScaleComponent",
    "GeneralDropoutComponent",
    "GruNonlinearityComponent",
    "LinearComponent",
    "LogSoftmaxComponent",
    "LstmNonlinearityComponent",
    "MaxoutComponent",
    "MaxpoolingComponent",
    "NaturalGradientAffineComponent",
    "NaturalGradientPerElementScaleComponent",
    "NaturalGradientRepeatedAffineComponent",
    "NoOpComponent",
    "NormalizeComponent",
    "OutputGruNonlinearityComponent",
    "PerElementOffsetComponent",
    "PerElementScaleComponent",
    "PermuteComponent",
    "PnormComponent",
    "PowerComponent",
    "RectifiedLinearComponent",
    "RepeatedAffineComponent",
    "RestrictedAttentionComponent",
    "ScaleAndOffsetComponent",
    "ScaleComponent",
    "SigmoidComponent",
    "SoftHingeComponent",
    "SoftmaxComponent",
    "SpecAugmentTimeMaskComponent",
    "SpliceComponent",
    "SpliceMaxComponent",
    "StatisticsExtractionComponent",
    "StatisticsPoolingComponent",
    "SumBlockComponent",
    "SumGroupComponent",
    "TanhComponent",
    "TdnnComponent",
    "TimeHeightConvolutionComponent",
];
