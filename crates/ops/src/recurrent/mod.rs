//! Recurrent cells, the same cells run over a sequence, and CTC, which reads what they say. Gates lie in the order of the
//! IR (LSTM f, i, c, o; GRU z, r, h), which is neither that of ONNX nor that of PyTorch.

mod activation;
mod cell;
mod ctc;
mod sequence;
mod shapes;

opset! {
    augru_cell::{AugruCell},
    augru_sequence::{AugruSequence},
    ctc_greedy_decoder::{CtcGreedyDecoder},
    ctc_greedy_decoder_seq_len::{CtcGreedyDecoderSeqLen},
    ctc_loss::{CtcLoss},
    gru_cell::{GruCell},
    gru_sequence::{GruSequence},
    lstm_cell::{LstmCell, LstmCellV1},
    lstm_sequence::{LstmSequence},
    rnn_cell::{RnnCell},
    rnn_sequence::{RnnSequence},
}

carafe_graph::attr_enum! {
    /// Which way a sequence is read.
    pub enum Direction {
        Forward = "forward",
        Reverse = "reverse",
        /// Both; the results of the two ways lie one after the other on the direction axis.
        Bidirectional = "bidirectional",
    }
}
