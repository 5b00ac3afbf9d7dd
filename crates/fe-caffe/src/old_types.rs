//! Layer types of the format before strings: words in a text, numbers in bytes.

/// Word, number and current name.
const TYPES: &[(&str, u8, &str)] = &[
    ("ACCURACY", 1, "Accuracy"),
    ("BNLL", 2, "BNLL"),
    ("CONCAT", 3, "Concat"),
    ("CONVOLUTION", 4, "Convolution"),
    ("DATA", 5, "Data"),
    ("DROPOUT", 6, "Dropout"),
    ("EUCLIDEAN_LOSS", 7, "EuclideanLoss"),
    ("FLATTEN", 8, "Flatten"),
    ("HDF5_DATA", 9, "HDF5Data"),
    ("HDF5_OUTPUT", 10, "HDF5Output"),
    ("IM2COL", 11, "Im2col"),
    ("IMAGE_DATA", 12, "ImageData"),
    ("INFOGAIN_LOSS", 13, "InfogainLoss"),
    ("INNER_PRODUCT", 14, "InnerProduct"),
    ("LRN", 15, "LRN"),
    ("MULTINOMIAL_LOGISTIC_LOSS", 16, "MultinomialLogisticLoss"),
    ("POOLING", 17, "Pooling"),
    ("RELU", 18, "ReLU"),
    ("SIGMOID", 19, "Sigmoid"),
    ("SOFTMAX", 20, "Softmax"),
    ("SOFTMAX_LOSS", 21, "SoftmaxWithLoss"),
    ("SPLIT", 22, "Split"),
    ("TANH", 23, "TanH"),
    ("WINDOW_DATA", 24, "WindowData"),
    ("ELTWISE", 25, "Eltwise"),
    ("POWER", 26, "Power"),
    ("SIGMOID_CROSS_ENTROPY_LOSS", 27, "SigmoidCrossEntropyLoss"),
    ("HINGE_LOSS", 28, "HingeLoss"),
    ("MEMORY_DATA", 29, "MemoryData"),
    ("ARGMAX", 30, "ArgMax"),
    ("THRESHOLD", 31, "Threshold"),
    ("DUMMY_DATA", 32, "DummyData"),
    ("SLICE", 33, "Slice"),
    ("MVN", 34, "MVN"),
    ("ABSVAL", 35, "AbsVal"),
    ("SILENCE", 36, "Silence"),
    ("CONTRASTIVE_LOSS", 37, "ContrastiveLoss"),
    ("EXP", 38, "Exp"),
    ("DECONVOLUTION", 39, "Deconvolution"),
];

/// The current name of a word.
pub(crate) fn by_word(word: &str) -> Option<&'static str> {
    TYPES.iter().find(|(w, ..)| *w == word).map(|(.., name)| *name)
}

/// The current name of a number.
pub(crate) fn by_number(number: i128) -> Option<&'static str> {
    TYPES.iter().find(|(_, n, _)| i128::from(*n) == number).map(|(.., name)| *name)
}
