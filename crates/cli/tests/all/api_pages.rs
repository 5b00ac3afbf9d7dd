//! The reference of the C boundary and of the command, printed from what they describe: `docs/reference/c-abi.md` from
//! `include/carafe.h`, `docs/reference/command.md` from `--help`. `BLESS=1 cargo test -p carafe-cli api_pages` writes them anew.

use crate::common::{ok, repo};
use std::fmt::Write;

fn check(page: &str, printed: &str) {
    let file = repo().join("docs/reference").join(page);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, printed).unwrap();
    }
    let there = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(there == printed, "docs/reference/{page} is old; BLESS=1 writes it anew");
}

/// A declaration of the header with the comment in front of it.
struct Item {
    comment: String,
    lines: Vec<String>,
}

fn items(header: &str) -> Vec<Item> {
    let (mut all, mut comment, mut open) = (vec![], String::new(), None::<Item>);
    for line in header.lines() {
        if let Some(item) = &mut open {
            item.lines.push(line.to_string());
            if line.starts_with('}') || (line.ends_with(';') && !item.lines[0].ends_with('{')) {
                all.extend(open.take());
            }
            continue;
        }
        let begins = ["typedef ", "static inline ", "#define CARAFE_"].iter().any(|word| line.starts_with(word));
        match line.strip_prefix("// ") {
            Some(text) => comment.extend([text, " "]),
            None if begins && !line.ends_with("_H") => {
                let item = Item { comment: std::mem::take(&mut comment), lines: vec![line.to_string()] };
                let whole = line.starts_with('#') || line.ends_with(';') || line.ends_with('}');
                if whole { all.push(item) } else { open = Some(item) }
            }
            None => comment.clear(),
        }
    }
    all
}

fn c_abi() -> String {
    let header = std::fs::read_to_string(repo().join("include/carafe.h")).unwrap();
    let mut out = String::from(
        "# The C boundary\n\nWhat `include/carafe.h` declares, printed from it. A library exports `carafe_abi` and `create_extensions` (an \
         extension) or `CreatePluginEngine` (a device); the engine fills in and reads the tables below. Tables grow at their ends. \
         `carafe.hpp`, `carafe_elementwise.h` and `carafe_device.hpp` make them short in C++ and C; \
         [custom-ops.md](../custom-ops.md), [kernels.md](../kernels.md) and [plugins.md](../plugins.md) show them at work.\n",
    );
    let all = items(&header);
    let kind = |word: &str| all.iter().filter(move |i| i.lines[0].starts_with(word)).collect::<Vec<_>>();
    out.push_str("\n## Tables and types\n");
    for item in kind("typedef") {
        let first = &item.lines[0];
        let name = match item.lines.last().unwrap().strip_prefix("} ") {
            Some(name) => name.trim_end_matches(';').to_string(),
            None => first.split("(*").nth(1).map_or_else(
                || first.trim_end_matches(';').rsplit(' ').next().unwrap_or_default().to_string(),
                |rest| rest.split(')').next().unwrap_or_default().to_string(),
            ),
        };
        let _ = write!(out, "\n### {name}\n\n");
        if !item.comment.is_empty() {
            let _ = write!(out, "{}\n\n", item.comment.trim());
        }
        let _ = write!(out, "```c\n{}\n```\n", item.lines.join("\n"));
    }
    out.push_str("\n## Helpers\n\n| function | |\n|---|---|\n");
    for item in kind("static inline") {
        let head = item.lines[0].trim_start_matches("static inline ").split(" {").next().unwrap_or_default();
        let _ = writeln!(out, "| `{head}` | {} |", item.comment.trim());
    }
    out.push_str("\n## Constants\n\n| name | value | |\n|---|---|---|\n");
    for item in kind("#define") {
        let mut words = item.lines[0].split_whitespace().skip(1);
        let (name, value) = (words.next().unwrap_or_default(), words.collect::<Vec<_>>().join(" "));
        let _ = writeln!(out, "| `{name}` | {value} | {} |", item.comment.trim());
    }
    out
}

#[test]
fn the_page_of_the_c_boundary_is_current() {
    let page = c_abi();
    for name in ["### CarafeOp\n", "### CarafeDevice\n", "### CarafeCreateExtensions\n", "| `CARAFE_ABI_MAJOR` | 1 |"] {
        assert!(page.contains(name), "{name} is missing");
    }
    check("c-abi.md", &page);
}

#[test]
fn the_page_of_the_command_is_current() {
    let help = ok(&["--help"]);
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = list.lines().filter_map(|l| l.strip_prefix("  ").filter(|l| !l.starts_with(' '))?.split(" ").next());
    let mut out =
        String::from("# The command\n\nWhat `carafe COMMAND --help` prints; `carafe man DIR` writes manual pages.\n");
    for name in names.filter(|n| *n != "help") {
        let mut words = vec![vec![name]];
        words.extend(match name {
            "extension" => vec![vec![name, "new"], vec![name, "build"], vec![name, "test"], vec![name, "watch"]],
            "plugin" => vec![vec![name, "new"]],
            _ => vec![],
        });
        for words in words {
            let text = ok(&[&words[..], &["--help"]].concat());
            let text: Vec<&str> = text.lines().map(str::trim_end).collect();
            let _ = write!(out, "\n## carafe {}\n\n```text\n{}\n```\n", words.join(" "), text.join("\n").trim_end());
        }
    }
    check("command.md", &out);
}
