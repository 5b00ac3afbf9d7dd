//! Names of operations and attributes as identifiers of Rust, C and C++.

/// Words that are taken in one of the languages, or by the code of the templates.
const TAKEN: &[&str] = &[
    "abstract",
    "alignas",
    "alignof",
    "and",
    "as",
    "asm",
    "async",
    "auto",
    "await",
    "become",
    "bool",
    "box",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "compl",
    "const",
    "constexpr",
    "continue",
    "crate",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dyn",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "final",
    "float",
    "fn",
    "for",
    "friend",
    "gen",
    "goto",
    "if",
    "impl",
    "in",
    "inline",
    "int",
    "let",
    "long",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "nullptr",
    "operator",
    "or",
    "override",
    "priv",
    "private",
    "protected",
    "pub",
    "public",
    "ref",
    "register",
    "restrict",
    "return",
    "self",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "super",
    "switch",
    "template",
    "this",
    "throw",
    "trait",
    "true",
    "try",
    "type",
    "typedef",
    "typename",
    "union",
    "unsafe",
    "unsigned",
    "unsized",
    "use",
    "using",
    "virtual",
    "void",
    "volatile",
    "where",
    "while",
    "xor",
    "yield",
];

/// `acme.SoftSwish` as `acme_softswish`: the names of files, as the old generator made them.
pub fn snake(name: &str) -> String {
    let text: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    let text = text.trim_matches('_').to_string();
    match text.chars().next() {
        Some(c) if c.is_ascii_digit() => format!("op_{text}"),
        Some(_) if TAKEN.contains(&text.as_str()) => format!("{text}_op"),
        Some(_) => text,
        None => "op".into(),
    }
}

/// `acme_mix` as `AcmeMix`: the name of a type.
pub fn camel(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
    let text: String = words.map(|w| format!("{}{}", w[..1].to_ascii_uppercase(), &w[1..])).collect();
    match text.chars().next() {
        Some(c) if c.is_ascii_digit() => format!("Op{text}"),
        // A type of this name would hide one that the templates use.
        Some(_) if ["Self", "Op", "Kernel", "Rule", "Result", "Vec", "String"].contains(&text.as_str()) => {
            format!("{text}Layer")
        }
        Some(_) => text,
        None => "Operation".into(),
    }
}

/// The name of a field for an attribute; an attribute whose name is taken gets an underscore.
pub(crate) fn field(name: &str) -> String {
    let text: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    let text = if text.starts_with(|c: char| c.is_ascii_digit()) { format!("_{text}") } else { text };
    if TAKEN.contains(&text.as_str()) || text.is_empty() { format!("{text}_") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_identifiers_in_every_language() {
        for (name, file, ty) in [
            ("SoftSwish", "softswish", "SoftSwish"),
            ("acme_mix", "acme_mix", "AcmeMix"),
            ("com.acme.Mix-2", "com_acme_mix_2", "ComAcmeMix2"),
            ("3D", "op_3d", "Op3D"),
            ("Switch", "switch_op", "Switch"),
            ("Op", "op", "OpLayer"),
        ] {
            assert_eq!((snake(name).as_str(), camel(name).as_str()), (file, ty));
        }
        assert_eq!(
            (field("type").as_str(), field("inner.deep").as_str(), field("Alpha").as_str()),
            ("type_", "inner_deep", "alpha")
        );
    }
}
