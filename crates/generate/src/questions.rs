//! The interactive form: questions, a numbered summary, and a loop that changes answers. It reads from any reader and writes to any
//! writer, so that a test can answer.

use crate::answers::{Answers, Attribute, Framework, Language, Literal, ShapeRule, Source};
use carafe_graph::{Error, Result};
use std::io::{BufRead, Write};

/// Someone who is asked.
pub struct Conversation<'a> {
    pub input: &'a mut dyn BufRead,
    pub output: &'a mut dyn Write,
}

impl std::fmt::Debug for Conversation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Conversation")
    }
}

impl Conversation<'_> {
    fn say(&mut self, text: &str) -> Result<()> {
        let done = self.output.write_all(text.as_bytes()).and_then(|()| self.output.flush());
        done.map_err(|e| Error::io("cannot ask", &e))
    }
    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.input.read_line(&mut line) {
            Ok(0) => Err(Error::usage("the answers ended before the questions; nothing was written")),
            Ok(_) => Ok(line.trim().to_string()),
            Err(e) => Err(Error::io("cannot read an answer", &e)),
        }
    }
    /// Asks until `read` takes the answer; an empty one means the default.
    fn ask<T>(&mut self, question: &str, default: &str, read: impl Fn(&str) -> Result<T>) -> Result<T> {
        loop {
            let hint = if default.is_empty() { String::new() } else { format!(" [{default}]") };
            self.say(&format!("{question}{hint}: "))?;
            let line = self.line()?;
            match read(if line.is_empty() { default } else { &line }) {
                Ok(value) => return Ok(value),
                Err(e) => self.say(&format!("  {e}\n"))?,
            }
        }
    }
    fn yes(&mut self, question: &str, default: bool) -> Result<bool> {
        let word = if default { "yes" } else { "no" };
        self.say(&format!("{question} (y/n) ? Default '{word}': "))?;
        loop {
            match self.line()?.to_ascii_lowercase().as_str() {
                "" => return Ok(default),
                "y" | "yes" => return Ok(true),
                "n" | "no" => return Ok(false),
                _ => self.say("  answer y or n: ")?,
            }
        }
    }
}

/// A question about one part of the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Name,
    Doc,
    Opset,
    Frameworks,
    Type(Framework),
    Attributes,
    Inputs,
    Outputs,
    Elementwise,
    Shape,
    Kernels,
    Language,
}

/// What is asked now: those that a flag has answered stay out, those of a framework come with it.
fn questions(answers: &Answers, chosen: bool) -> Vec<Question> {
    let mut all = vec![Question::Name, Question::Doc, Question::Opset];
    if !chosen {
        all.push(Question::Frameworks);
    }
    all.extend(answers.sources.iter().map(|s| Question::Type(s.framework)));
    all.extend([Question::Attributes, Question::Inputs, Question::Outputs]);
    if (answers.inputs.len(), answers.outputs.len()) == (1, 1) {
        all.push(Question::Elementwise);
    }
    if !answers.elementwise {
        all.push(Question::Shape);
    }
    if !chosen {
        all.push(Question::Kernels);
    }
    all.push(Question::Language);
    all
}

/// Fills answers by asking. `chosen`: frameworks and kernels were chosen already.
pub fn ask(talk: &mut Conversation<'_>, answers: &mut Answers, chosen: bool) -> Result<()> {
    let mut asked = vec![];
    loop {
        while let Some(q) = questions(answers, chosen).into_iter().find(|q| !asked.contains(q)) {
            q.ask(talk, answers)?;
            asked.push(q);
        }
        if (answers.inputs.len(), answers.outputs.len()) != (1, 1) {
            answers.elementwise = false;
            // A shape rule that was not asked for while the operation was elementwise is asked for now.
            if !asked.contains(&Question::Shape) {
                continue;
            }
        }
        if answers.elementwise {
            answers.shape = ShapeRule::Same;
        }
        if let Err(e) = answers.check() {
            talk.say(&format!("\n{e}\n"))?;
        }
        let all = questions(answers, chosen);
        talk.say("\nAnswers:\n")?;
        for (i, q) in all.iter().enumerate() {
            talk.say(&format!("{:>3}. {:<50} {}\n", i + 1, q.text(), q.shown(answers)))?;
        }
        if !talk.yes("\nDo you want to change any answer", false)? {
            match answers.check() {
                Ok(()) => return Ok(()),
                Err(_) => continue,
            }
        }
        let n = all.len();
        let which = talk.ask(&format!("Number of the question (1-{n})"), "", |text| {
            let number = text.parse::<usize>().ok().filter(|i| (1..=n).contains(i));
            number.ok_or_else(|| Error::usage(format!("expected a number from 1 to {n}, found `{text}`")))
        })?;
        all[which - 1].ask(talk, answers)?;
    }
}

impl Question {
    fn text(self) -> String {
        match self {
            Question::Name => "Name of the operation".into(),
            Question::Doc => "What it does, in one sentence".into(),
            Question::Opset => "Name of its opset".into(),
            Question::Frameworks => "Frameworks to read it from, with commas".into(),
            Question::Type(f) => format!("Its type in {}", f.title()),
            Question::Attributes => "Attributes".into(),
            Question::Inputs => "Names of its inputs, with commas".into(),
            Question::Outputs => "Names of its outputs, with commas".into(),
            Question::Elementwise => "Does it work element by element".into(),
            Question::Shape => "Does it change the shape of input 0".into(),
            Question::Kernels => "Devices to write kernels for, with commas".into(),
            Question::Language => "Language (rust, c, cpp, python)".into(),
        }
    }

    fn shown(self, a: &Answers) -> String {
        let yes = |holds: bool| if holds { "yes" } else { "no" }.to_string();
        let joined = |items: Vec<String>| if items.is_empty() { "none".into() } else { items.join(", ") };
        match self {
            Question::Name => a.name.clone(),
            Question::Doc => a.doc.clone(),
            Question::Opset => a.opset.clone(),
            Question::Frameworks => joined(a.sources.iter().map(|s| s.framework.to_string()).collect()),
            Question::Type(f) => a.source(f).map_or(String::new(), |s| match &s.domain {
                Some(domain) => format!("{domain}::{}", s.op_type),
                None => s.op_type.clone(),
            }),
            Question::Attributes => joined(a.attributes.iter().map(Attribute::to_string).collect()),
            Question::Inputs => joined(a.inputs.clone()),
            Question::Outputs => joined(a.outputs.clone()),
            Question::Elementwise => yes(a.elementwise),
            Question::Shape => yes(a.shape == ShapeRule::Custom),
            Question::Kernels => joined(kernels(a)),
            Question::Language => a.language.to_string(),
        }
    }

    fn ask(self, talk: &mut Conversation<'_>, a: &mut Answers) -> Result<()> {
        let text = self.text();
        let now = match self.shown(a) {
            shown if shown == "none" => String::new(),
            shown => shown,
        };
        let some = |text: &str| match text {
            "" => Err(Error::usage("an answer is needed")),
            text => Ok(text.to_string()),
        };
        match self {
            Question::Name => {
                let before = std::mem::replace(&mut a.name, talk.ask(&text, &now, some)?);
                // Types that were the name of the operation follow it.
                let name = a.name.clone();
                a.sources
                    .iter_mut()
                    .filter(|s| s.op_type == before || s.op_type.is_empty())
                    .for_each(|s| s.op_type = name.clone());
            }
            Question::Doc => a.doc = talk.ask(&text, &now, |t| Ok(t.to_string()))?,
            Question::Opset => a.opset = talk.ask(&text, &now, some)?,
            Question::Frameworks => {
                let words: Vec<&str> = Framework::ALL.iter().map(|f| f.word()).collect();
                let frameworks = talk.ask(&format!("{text} ({}; none)", words.join(", ")), &now, |t| {
                    list(t, |w| w.parse::<Framework>())
                })?;
                a.sources.retain(|s| frameworks.contains(&s.framework));
                for f in frameworks {
                    if a.source(f).is_none() {
                        a.sources.push(Source::new(f, a.name.clone()));
                    }
                }
            }
            Question::Type(f) => {
                let hint = match f {
                    Framework::Onnx => " (DOMAIN::TYPE, or TYPE for every domain)",
                    Framework::Caffe => " (MODULE.LAYER for a Python layer)",
                    Framework::Mxnet => " (Custom::OP_TYPE for a Custom operator)",
                    _ => "",
                };
                let source = talk.ask(&format!("{text}{hint}"), &now, |t| {
                    let t = some(t)?;
                    Ok(match t.split_once("::") {
                        Some((domain, op)) => Source { domain: Some(domain.into()), ..Source::new(f, op) },
                        None => Source::new(f, t),
                    })
                })?;
                a.read_from(source);
            }
            Question::Attributes => attributes(talk, a)?,
            Question::Inputs => a.inputs = talk.ask(&text, &now, |t| list(t, some))?,
            Question::Outputs => a.outputs = talk.ask(&text, &now, |t| list(t, some))?,
            Question::Elementwise => a.elementwise = talk.yes(&text, a.elementwise)?,
            Question::Shape => {
                let changes = talk.yes(&text, a.shape == ShapeRule::Custom)?;
                a.shape = if changes { ShapeRule::Custom } else { ShapeRule::Same };
            }
            Question::Kernels => {
                let devices = talk.ask(&format!("{text} (cpu, gpu, vpu; none)"), &now, |t| {
                    list(t, |w| match w.to_ascii_lowercase().as_str() {
                        "cpu" | "gpu" | "vpu" => Ok(w.to_ascii_lowercase()),
                        _ => Err(Error::usage(format!("`{w}` is no device with kernels; there are cpu, gpu, vpu"))),
                    })
                })?;
                let has = |name: &str| devices.iter().any(|d| d == name);
                (a.cpu, a.gpu, a.vpu) = (has("cpu"), has("gpu"), has("vpu"));
            }
            Question::Language => a.language = talk.ask(&text, &now, str::parse::<Language>)?,
        }
        Ok(())
    }
}

fn kernels(a: &Answers) -> Vec<String> {
    let all = [("cpu", a.cpu), ("gpu", a.gpu), ("vpu", a.vpu)];
    all.into_iter().filter(|k| k.1).map(|k| k.0.to_string()).collect()
}

// Words between commas; `none` and an empty line are no words.
fn list<T>(text: &str, read: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    let words = text.split([',', ' ']).map(str::trim).filter(|w| !w.is_empty() && *w != "none");
    words.map(read).collect()
}

// One line for each, as the old generator read them: `NAME TYPE [DEFAULT]` too.
fn attributes(talk: &mut Conversation<'_>, a: &mut Answers) -> Result<()> {
    talk.say(
        "Attributes, one on a line as NAME:TYPE=DEFAULT, such as alpha:float=0.5; without =DEFAULT a node must have it.\n\
         Types: int, float, bool, string, ints, floats, strings. NAME<SOURCE says another name in the model. `q` ends, `-NAME` \
         removes.\n",
    )?;
    for attribute in &a.attributes {
        talk.say(&format!("    {attribute}\n"))?;
    }
    loop {
        talk.say("  attribute (q to end): ")?;
        let line = talk.line()?;
        if line.is_empty() || line == "q" {
            return Ok(());
        }
        if let Some(name) = line.strip_prefix('-') {
            a.attributes.retain(|x| x.name != name.trim());
            continue;
        }
        match attribute(&line) {
            Ok(new) => {
                a.attributes.retain(|x| x.name != new.name);
                a.attributes.push(new);
            }
            Err(e) => talk.say(&format!("  {e}\n"))?,
        }
    }
}

fn attribute(line: &str) -> Result<Attribute> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [name, kind] if !line.contains([':', '=']) => Ok(Attribute::new(name, kind.parse()?)),
        [name, kind, default] if !line.contains([':', '=']) => {
            let kind = kind.parse()?;
            Ok(Attribute { default: Some(Literal::parse(kind, default)?), ..Attribute::new(name, kind) })
        }
        _ => Attribute::parse(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(lines: &str, mut answers: Answers, chosen: bool) -> (Result<Answers>, String) {
        let (mut input, mut output) = (lines.as_bytes(), vec![]);
        let done = ask(&mut Conversation { input: &mut input, output: &mut output }, &mut answers, chosen);
        (done.map(|()| answers), String::from_utf8(output).unwrap())
    }

    #[test]
    fn questions_fill_the_answers() {
        let lines = "SoftSwish\nx * sigmoid(x)\nacme\nonnx,caffe\nacme.ai::Swish\n\nalpha:float=0.5\nsteps ints\nbad\nq\n\n\n\ncpu,gpu\ncpp\nn\n";
        let (answers, said) = answer(lines, Answers::new(""), false);
        let a = answers.unwrap_or_else(|e| panic!("{e}\n{said}"));
        assert_eq!((a.name.as_str(), a.opset.as_str(), a.language), ("SoftSwish", "acme", Language::Cpp));
        assert_eq!(a.source(Framework::Onnx).unwrap().domain.as_deref(), Some("acme.ai"));
        assert_eq!(a.source(Framework::Caffe).unwrap().op_type, "SoftSwish");
        assert_eq!(a.attributes.len(), 2);
        assert!(a.elementwise && a.cpu && a.gpu && !a.vpu);
        assert!(
            said.contains("neither a type nor a default") && said.contains("Do you want to change any answer"),
            "{said}"
        );
    }

    #[test]
    fn an_answer_can_be_changed_and_asks_what_follows_from_it() {
        // Question 6 is the outputs; with two of them the shape is asked for.
        let lines = "Mix\n\n\nq\n\n\n\n\ny\n9\n6\na,b\ny\nn\n";
        let (answers, said) = answer(lines, Answers::new(""), true);
        let a = answers.unwrap_or_else(|e| panic!("{e}\n{said}"));
        assert_eq!((a.outputs.len(), a.elementwise, a.shape), (2, false, ShapeRule::Custom), "{said}");
        assert!(said.contains("expected a number from 1 to 8"), "{said}");
    }

    #[test]
    fn answers_that_end_early_are_an_error() {
        let (answers, _) = answer("Mix\n", Answers::new(""), false);
        assert!(answers.unwrap_err().to_string().contains("nothing was written"));
    }
}
