//! Fields that only training needs.

const TRAINING: &[&str] = &[
    "ActiveScalingCount", "AlphaInOut", "AvgInput", "AvgInputCount", "BackpropScale", "BiasLearnRateCoef", "CellDiffClip",
    "ClipGradient", "ClippingThreshold", "Count", "DerivAvg", "DerivSum", "DiffClip", "DropoutPerFrame", "EntropyStats",
    "GradClip", "GradientBoost", "IsGradient", "IsUpdatable", "L2Regularize", "LearnRateCoef", "LearningRate",
    "LearningRateFactor", "MaxChange", "MaxChangePerMinibatch", "MaxChangePerSample", "MaxChangeScaleStats", "MaxMemoryMb",
    "MaxNorm", "MaxRowsProcess", "NormBasedClipping", "NumBackpropped", "NumDimsProcessed", "NumDimsSelfRepaired",
    "NumElementsClipped", "NumElementsProcessed", "NumElementsZeroed", "NumMinibatchesHistory", "NumSamplesHistory",
    "NumSelfRepaired", "NumZeroingBoundaries", "OderivCount", "OderivRms", "OrthonormalConstraint", "PosteriorStats", "Rank",
    "RankIn", "RankInOut", "RankOut", "RecurrenceInterval", "SelfRepairClippedProportionThreshold", "SelfRepairConfig",
    "SelfRepairLowerThreshold", "SelfRepairProb", "SelfRepairScale", "SelfRepairTarget", "SelfRepairThreshold",
    "SelfRepairTotal", "SelfRepairUpperThreshold", "SpecAugmentMaxProportion", "SpecAugmentMaxRegions", "StatsCount",
    "TimePeriod", "UpdateCount", "UpdatePeriod", "UseNaturalGradient", "ValueAvg", "ValueSum", "VisibleBias", "ZeroingInterval",
    "ZeroingThreshold",
];

/// Whether a field of a component says nothing about what it computes.
pub(crate) fn is_training(kind: &str, field: &str) -> bool {
    // The slopes of a ParametricRelu are named like a number of natural gradients.
    (TRAINING.contains(&field) || field == "Alpha" && kind != "ParametricRelu") || field.ends_with("LearnRateCoef")
}
