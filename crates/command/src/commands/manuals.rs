//! `carafe completions` and `carafe man`: both printed from the option definitions.

use super::print_as_it_is;
use crate::args::{Cli, CompletionsArgs, ManArgs};
use carafe::{Error, Result};
use clap::CommandFactory;

pub(crate) fn completions(args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "carafe", &mut script);
    print_as_it_is(&String::from_utf8_lossy(&script))
}

pub(crate) fn man(args: &ManArgs) -> Result<()> {
    match &args.output {
        None => {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(Cli::command()).render(&mut page);
            rendered.map_err(|e| Error::io("cannot make the manual page", &e))?;
            print_as_it_is(&String::from_utf8_lossy(&page))
        }
        Some(dir) => std::fs::create_dir_all(dir)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), dir))
            .map_err(|e| Error::io(format!("cannot write manual pages to `{}`", dir.display()), &e)),
    }
}
