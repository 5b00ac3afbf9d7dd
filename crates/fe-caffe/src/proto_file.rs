//! `.proto` files: the messages, enums and fields of the language's two versions. Services, options and imports are read past;
//! a type that is declared nowhere is taken for a message of unknown fields.

use crate::schema::{Coding, EnumType, FieldKind, FieldType, Schema};
use carafe_textproto::{Cursor, TextError, Value};

/// Messages inside of messages deeper than this are refused.
const MAX_DEPTH: usize = 50;

/// The types of a `.proto` file.
pub(crate) fn parse(text: &str) -> Result<Schema, TextError> {
    let mut p = Parser { c: Cursor::new(text), schema: Schema::default(), package: String::new() };
    loop {
        p.blanks()?;
        if p.c.peek().is_none() {
            break;
        }
        if p.c.eat(';') {
            continue;
        }
        match p.word("a definition")? {
            "message" => p.message("", 0)?,
            "enum" => p.enumeration("")?,
            "package" => {
                p.package = p.path("the name of the package")?.to_string();
                p.statement()?;
            }
            "syntax" | "import" | "option" | "edition" => p.statement()?,
            "extend" => {
                let name = p.path("a message")?.to_string();
                let name = p.without_package(&name);
                p.fields(&name, 0)?;
            }
            "service" => p.skip_block()?,
            other => return Err(p.c.error(format!("`{other}` is no definition of a `.proto` file"))),
        }
    }
    p.resolve();
    Ok(p.schema)
}

struct Parser<'t> {
    c: Cursor<'t>,
    schema: Schema,
    package: String,
}

impl<'t> Parser<'t> {
    // White space and both kinds of comments.
    fn blanks(&mut self) -> Result<(), TextError> {
        loop {
            self.c.take_while(char::is_whitespace);
            if self.c.rest().starts_with("//") {
                self.c.take_while(|c| c != '\n');
            } else if let Some(rest) = self.c.rest().strip_prefix("/*") {
                let Some(end) = rest.find("*/") else { return Err(self.c.error("the comment does not end")) };
                let stop = self.c.offset() + 2 + end + 2;
                while self.c.offset() < stop {
                    self.c.bump();
                }
            } else {
                return Ok(());
            }
        }
    }

    fn word(&mut self, what: &str) -> Result<&'t str, TextError> {
        self.blanks()?;
        match self.c.word() {
            "" => Err(self.c.expected(what)),
            word => Ok(word),
        }
    }

    // `.a.b.C`
    fn path(&mut self, what: &str) -> Result<&'t str, TextError> {
        self.blanks()?;
        match self.c.take_while(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.') {
            "" => Err(self.c.expected(what)),
            path => Ok(path),
        }
    }

    fn sign(&mut self, sign: char) -> Result<(), TextError> {
        self.blanks()?;
        if self.c.eat(sign) { Ok(()) } else { Err(self.c.expected(&format!("`{sign}`"))) }
    }

    fn eat(&mut self, sign: char) -> Result<bool, TextError> {
        self.blanks()?;
        Ok(self.c.eat(sign))
    }

    fn string(&mut self) -> Result<Option<&'t str>, TextError> {
        self.blanks()?;
        let Some(quote @ ('"' | '\'')) = self.c.peek() else { return Ok(None) };
        let at = self.c.position();
        self.c.bump();
        let text = self.c.take_while(|c| c != quote && c != '\n');
        if self.c.eat(quote) { Ok(Some(text)) } else { Err(at.error("the string does not end on its line")) }
    }

    // Up to and with the `;`.
    fn statement(&mut self) -> Result<(), TextError> {
        loop {
            if self.string()?.is_some() {
                continue;
            }
            match self.c.peek() {
                Some('{') => self.skip_block()?,
                Some(';') => {
                    self.c.bump();
                    return Ok(());
                }
                Some(_) => drop(self.c.bump()),
                None => return Err(self.c.expected("`;`")),
            }
        }
    }

    // Everything up to the `}` of the next `{`.
    fn skip_block(&mut self) -> Result<(), TextError> {
        let mut open = 0;
        loop {
            if self.string()?.is_some() {
                continue;
            }
            match self.c.bump() {
                Some('{') => open += 1,
                Some('}') if open <= 1 => return Ok(()),
                Some('}') => open -= 1,
                Some(_) => {}
                None => return Err(self.c.expected("`}`")),
            }
        }
    }

    fn message(&mut self, outer: &str, depth: usize) -> Result<(), TextError> {
        let name = joined(outer, self.word("the name of a message")?);
        self.schema.messages.entry(name.clone()).or_default();
        self.fields(&name, depth)
    }

    fn fields(&mut self, message: &str, depth: usize) -> Result<(), TextError> {
        if depth > MAX_DEPTH {
            return Err(self.c.error(format!("messages are nested deeper than {MAX_DEPTH}")));
        }
        self.sign('{')?;
        loop {
            self.blanks()?;
            if self.c.eat('}') {
                return Ok(());
            }
            if self.c.eat(';') {
                continue;
            }
            match self.path("a field or `}`")? {
                "message" => self.message(message, depth + 1)?,
                "enum" => self.enumeration(message)?,
                "option" | "extensions" | "reserved" => self.statement()?,
                "extend" => self.skip_block()?,
                "oneof" => {
                    self.word("the name of a oneof")?;
                    self.fields(message, depth + 1)?;
                }
                "repeated" => {
                    let ty = self.path("a type")?;
                    self.field(message, ty, true, depth)?;
                }
                "optional" | "required" => {
                    let ty = self.path("a type")?;
                    self.field(message, ty, false, depth)?;
                }
                ty => self.field(message, ty, false, depth)?,
            }
        }
    }

    fn field(&mut self, message: &str, ty: &str, repeated: bool, depth: usize) -> Result<(), TextError> {
        if ty == "map" && self.eat('<')? {
            // A map is repeated messages of key and value; no model of Caffe has one.
            self.c.take_while(|c| c != '>' && c != ';');
            self.sign('>')?;
            self.word("the name of a field")?;
            return self.statement();
        }
        let name = self.word("the name of a field")?.to_string();
        self.sign('=')?;
        let number = self.number()?;
        if ty == "group" {
            let inner = joined(message, &name);
            self.schema.messages.entry(inner.clone()).or_default();
            return self.fields(&inner, depth + 1);
        }
        let default = if self.eat('[')? { self.options()? } else { None };
        self.sign(';')?;
        let number = u32::try_from(number).map_err(|_| self.c.error(format!("{number} is no number of a field")))?;
        // Which types are enums is known at the end.
        let kind = scalar(ty).unwrap_or_else(|| FieldKind::Message(joined(message, &format!("?{ty}"))));
        let field = FieldType { name, number, repeated, kind, default };
        self.schema.messages.entry(message.to_string()).or_default().fields.push(field);
        Ok(())
    }

    // Options of a field; gives the default.
    fn options(&mut self) -> Result<Option<String>, TextError> {
        let mut default = None;
        loop {
            self.blanks()?;
            let name = self.c.take_while(|c| c.is_ascii_alphanumeric() || "_.()".contains(c)).to_string();
            self.sign('=')?;
            let value = match self.string()? {
                Some(text) => text.to_string(),
                None if self.c.peek() == Some('{') => {
                    self.skip_block()?;
                    String::new()
                }
                None => self.c.take_while(|c| !",];".contains(c) && !c.is_whitespace()).to_string(),
            };
            if name == "default" {
                default = Some(value);
            }
            if !self.eat(',')? {
                self.sign(']')?;
                return Ok(default);
            }
        }
    }

    fn number(&mut self) -> Result<i64, TextError> {
        self.blanks()?;
        let negative = self.c.eat('-');
        match self.c.number(negative)? {
            Value::Int(n) => i64::try_from(n).map_err(|_| self.c.error("the number is too large")),
            _ => Err(self.c.error("expected a whole number")),
        }
    }

    fn enumeration(&mut self, outer: &str) -> Result<(), TextError> {
        let name = joined(outer, self.word("the name of an enum")?);
        self.sign('{')?;
        let mut values = vec![];
        loop {
            self.blanks()?;
            if self.c.eat('}') {
                break;
            }
            if self.c.eat(';') {
                continue;
            }
            match self.word("a value or `}`")? {
                "option" | "reserved" => self.statement()?,
                word => {
                    self.sign('=')?;
                    values.push((word.to_string(), self.number()?));
                    self.statement()?;
                }
            }
        }
        self.schema.enums.insert(name, EnumType { values });
        Ok(())
    }

    fn without_package(&self, path: &str) -> String {
        let path = path.trim_start_matches('.');
        let inner = path.strip_prefix(self.package.as_str()).and_then(|p| p.strip_prefix('.'));
        inner.unwrap_or(path).to_string()
    }

    // A type named inside of a message is the nearest one outwards.
    fn resolve(&mut self) {
        let schema = &self.schema;
        let mut found = vec![];
        for (message, m) in &schema.messages {
            for (i, f) in m.fields.iter().enumerate() {
                let FieldKind::Message(waiting) = &f.kind else { continue };
                let Some((_, ty)) = waiting.split_once('?') else { continue };
                let ty = self.without_package(ty);
                let mut scope = message.as_str();
                let kind = loop {
                    let full = joined(scope, &ty);
                    if schema.enums.contains_key(&full) {
                        break FieldKind::Enum(full);
                    }
                    if schema.messages.contains_key(&full) || scope.is_empty() {
                        break FieldKind::Message(full);
                    }
                    scope = scope.rsplit_once('.').map_or("", |(outer, _)| outer);
                };
                found.push((message.clone(), i, kind));
            }
        }
        for (message, i, kind) in found {
            if let Some(f) = self.schema.messages.get_mut(&message).and_then(|m| m.fields.get_mut(i)) {
                f.kind = kind;
            }
        }
    }
}

fn joined(outer: &str, name: &str) -> String {
    if outer.is_empty() { name.to_string() } else { format!("{outer}.{name}") }
}

fn scalar(ty: &str) -> Option<FieldKind> {
    let int = |signed, bits, coding| FieldKind::Int { signed, bits, coding };
    Some(match ty {
        "int32" => int(true, 32, Coding::Varint),
        "int64" => int(true, 64, Coding::Varint),
        "uint32" => int(false, 32, Coding::Varint),
        "uint64" => int(false, 64, Coding::Varint),
        "sint32" => int(true, 32, Coding::ZigZag),
        "sint64" => int(true, 64, Coding::ZigZag),
        "fixed32" => int(false, 32, Coding::Fixed),
        "fixed64" => int(false, 64, Coding::Fixed),
        "sfixed32" => int(true, 32, Coding::Fixed),
        "sfixed64" => int(true, 64, Coding::Fixed),
        "bool" => FieldKind::Bool,
        "float" => FieldKind::Float,
        "double" => FieldKind::Double,
        "string" | "bytes" => FieldKind::Str,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_enums_and_defaults_are_read() {
        let text = r#"
            syntax = "proto2"; package caffe; import "x.proto";
            /* a comment; { */ option (a.b) = { c: "}" };
            message A {
              enum E { ONE = 1; TWO = 2 [deprecated = true]; MINUS = -1; }
              optional E e = 1 [default = TWO]; // behind
              repeated caffe.B b = 2; repeated uint32 n = 3 [packed = true];
              optional string s = 4 [default = "a;b", deprecated = true];
              oneof choice { float x = 5; B y = 6; }
              message B { required sint64 z = 1; }
              reserved 7, 8; extensions 100 to max; map<string, int32> m = 9;
            }
            message B { optional A.E e = 1; optional Unknown u = 2; }
            extend A { optional bool late = 200; }
            service S { rpc F(A) returns (B) {} }
        "#;
        let s = parse(text).unwrap();
        let a = s.message("A").unwrap();
        let kind = |n: &str| a.named(n).unwrap().kind.clone();
        assert_eq!(kind("e"), FieldKind::Enum("A.E".into()));
        assert_eq!(a.named("e").unwrap().default.as_deref(), Some("TWO"));
        assert_eq!(a.named("s").unwrap().default.as_deref(), Some("a;b"));
        assert_eq!(kind("y"), FieldKind::Message("A.B".into()));
        assert_eq!(a.named("late").unwrap().number, 200);
        assert_eq!(s.word("A.E", -1), Some("MINUS"));
        assert_eq!(s.message("B").unwrap().named("e").unwrap().kind, FieldKind::Enum("A.E".into()));
        assert!(a.named("m").is_none());
    }

    #[test]
    fn slips_are_told_with_their_place() {
        let text = |t: &str| parse(t).unwrap_err().to_string();
        assert_eq!(
            text("message A {\n optional int32 = 1; }"),
            "line 2, column 17: expected the name of a field, found `=`"
        );
        assert!(text("message A {").contains("expected a field or `}`"));
        assert!(text("nonsense").contains("no definition"));
        assert!(text("/* open").contains("does not end"));
        assert!(text(&"message A {".repeat(100)).contains("nested deeper"));
    }
}
