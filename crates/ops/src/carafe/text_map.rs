//! TextMap: one text for each text. The case of letters changes either in ASCII alone or in all of Unicode.

use super::text::require_text;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{ElementType, Tensor};

carafe_graph::attr_enum! {
    /// What happens to a text.
    pub enum TextAction {
        /// Letters A to Z become small.
        LowerAscii = "lower_ascii",
        /// Letters a to z become capital.
        UpperAscii = "upper_ascii",
        /// All letters become small.
        Lower = "lower",
        /// All letters become capital.
        Upper = "upper",
        /// White space of ASCII at both ends is gone.
        Strip = "strip",
    }
}

/// Changes every text.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "data")]
pub struct TextMap {
    /// What happens to a text.
    pub action: TextAction,
}

impl Op for TextMap {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        require_text(cx, 0)?;
        cx.set(0, ElementType::String, cx.shape(0).clone());
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let space = |c: char| matches!(c, ' ' | '\t'..='\r');
        let change = |text: &String| match self.action {
            TextAction::LowerAscii => text.to_ascii_lowercase(),
            TextAction::UpperAscii => text.to_ascii_uppercase(),
            TextAction::Lower => text.to_lowercase(),
            TextAction::Upper => text.to_uppercase(),
            TextAction::Strip => text.trim_matches(space).to_string(),
        };
        let texts: Vec<String> = cx.input(0).strings()?.iter().map(change).collect();
        let shape = cx.shape(0).to_vec();
        cx.set(0, Tensor::from_strings(&shape, texts)?)
    }
}
