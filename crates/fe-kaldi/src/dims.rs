//! How many columns components read and give, as far as their fields tell. What remembers must be made before what it remembers,
//! so sizes are known before shapes are.

use crate::component::Component;

/// How many columns the first component of a chain reads.
pub(crate) fn input_dim(c: &Component) -> Option<usize> {
    let cols = |name: &str| c.shape(name).and_then(|s| (s.len() == 2).then(|| s[1]));
    let named = ["InputDim", "Dim"].iter().find_map(|n| c.int(n)).and_then(|d| usize::try_from(d).ok());
    let blocks = c.int("NumBlocks").and_then(|n| usize::try_from(n).ok()).unwrap_or(1);
    named
        .or_else(|| {
            ["LinearParams", "Params", "CuMatrix"].iter().find_map(|n| cols(n)).and_then(|n| n.checked_mul(blocks))
        })
        .or_else(|| ["Scales", "Bias", "Params"].iter().find_map(|n| c.shape(n)).and_then(|s| s.first().copied()))
        .or_else(|| Some(c.ints("Reorder").or(c.ints("ColumnMap"))?.len()))
}

/// How many columns a component gives, where it reads `input`.
pub(crate) fn output_dim(c: &Component, input: Option<usize>) -> Option<usize> {
    let int = |name: &str| c.int(name).and_then(|n| usize::try_from(n).ok());
    let rows = |name: &str| c.shape(name).and_then(|s| s.first().copied());
    let product = |a: Option<usize>, b: Option<usize>| a?.checked_mul(b?);
    let steps = |size: &str, window: &str, step: &str| {
        let free = int(size)?.checked_sub(int(window)?)?;
        Some(1 + free.checked_div(int(step)?)?)
    };
    match c.kind.as_str() {
        "RepeatedAffineComponent" | "NaturalGradientRepeatedAffineComponent" => {
            product(rows("LinearParams"), int("NumRepeats"))
        }
        "LstmNonlinearityComponent" => c.shape("Params")?.get(1)?.checked_mul(2),
        "GruNonlinearityComponent" | "OutputGruNonlinearityComponent" => int("CellDim")?.checked_mul(2),
        "Convolutional1dComponent" => product(rows("FilterParams"), steps("PatchStride", "PatchDim", "PatchStep")),
        "ConvolutionComponent" => {
            let all = product(steps("InputXDim", "FiltXDim", "FiltXStep"), steps("InputYDim", "FiltYDim", "FiltYStep"));
            product(rows("FilterParams"), all)
        }
        "MaxpoolingComponent" if c.int("PoolXSize").is_some() => {
            let xy =
                product(steps("InputXDim", "PoolXSize", "PoolXStep"), steps("InputYDim", "PoolYSize", "PoolYStep"));
            product(xy, steps("InputZDim", "PoolZSize", "PoolZStep"))
        }
        "TimeHeightConvolutionComponent" => product(int("NumFiltersOut"), int("HeightOut")),
        "RestrictedAttentionComponent" => {
            let context = int("NumLeftInputs")?.checked_add(int("NumRightInputs")?)?.checked_add(1)?;
            let behind = if c.flag("OutputContext").unwrap_or(true) { context } else { 0 };
            product(int("NumHeads"), int("ValueDim")?.checked_add(behind))
        }
        "StatisticsExtractionComponent" => {
            let times = if c.flag("IncludeVarinance").unwrap_or(true) { 2 } else { 1 };
            int("InputDim")?.checked_mul(times)?.checked_add(1)
        }
        "StatisticsPoolingComponent" => int("InputDim")?.checked_sub(1)?.checked_add(int("NumLogCountFeatures")?),
        "NormalizeComponent" => {
            let dim = int("InputDim").or(int("Dim"))?;
            let blocks = dim.checked_div(int("BlockDim").unwrap_or(dim))?;
            Some(dim + if c.flag("AddLogStddev").unwrap_or(false) { blocks } else { 0 })
        }
        "SumGroupComponent" => Some(c.ints("Sizes")?.len()),
        "PermuteComponent" => Some(c.ints("ColumnMap").or(c.ints("Reorder"))?.len()),
        "ConstantComponent" | "ConstantFunctionComponent" => rows("Output"),
        "DctComponent" => {
            let keep = int("DctKeepDim").filter(|n| *n > 0).or(int("DctDim"));
            product(int("Dim")?.checked_div(int("DctDim")?), keep)
        }
        _ => int("OutputDim")
            .or_else(|| ["LinearParams", "CuMatrix"].iter().find_map(|n| rows(n)))
            .or_else(|| c.shape("Params").filter(|s| s.len() == 2).map(|s| s[0]))
            .or_else(|| int("Dim"))
            .or(input),
    }
}
