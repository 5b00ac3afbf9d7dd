//! `carafe explain`: the longer text behind an error.

use super::{print, table};
use crate::extension_args::ExplainArgs;
use carafe::{Error, Result};
use carafe_generate::faq::{ENTRIES, find};

pub(crate) fn run(args: &ExplainArgs) -> Result<()> {
    let Some(code) = &args.code else {
        let rows: Vec<[String; 3]> = ENTRIES.iter().map(|e| [e.code(), e.word.into(), e.question.into()]).collect();
        return print(&table(&rows));
    };
    match find(code) {
        Some(entry) => print(&entry.text()),
        None => Err(Error::usage(format!("there is no text for `{code}`; `carafe explain` lists them"))),
    }
}
