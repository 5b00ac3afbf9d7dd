//! Which layers belong to the net that is run. The phase is always TEST; level and stages are those the net itself states.

use crate::net::misplaced;
use carafe_graph::{Error, Result};
use carafe_textproto::{Message, Position, Value};

const TEST: i64 = 1;

#[derive(Debug, Default)]
pub(crate) struct State {
    level: i64,
    stages: Vec<String>,
}

impl State {
    /// What the field `state` of a net says.
    pub(crate) fn of(state: Option<&Message>) -> Result<State> {
        let Some(m) = state else { return Ok(State::default()) };
        Ok(State { level: number(m, "level")?.unwrap_or(0), stages: words(m, "stage") })
    }

    /// Whether a layer with these rules is part of the net.
    pub(crate) fn keeps(&self, layer: &Message) -> Result<bool> {
        let include = rules(layer, "include")?;
        let exclude = rules(layer, "exclude")?;
        if !include.is_empty() && !exclude.is_empty() {
            return Err(Error::invalid("has both `include` and `exclude`; only one of them can decide"));
        }
        for rule in &exclude {
            if self.meets(rule)? {
                return Ok(false);
            }
        }
        for rule in &include {
            if self.meets(rule)? {
                return Ok(true);
            }
        }
        Ok(include.is_empty())
    }

    fn meets(&self, rule: &Message) -> Result<bool> {
        let phase = match rule.get("phase") {
            None => TEST,
            Some(Value::Word(w)) if w == "TEST" => TEST,
            Some(Value::Word(w)) if w == "TRAIN" => 0,
            Some(v) => v
                .as_i64()
                .ok_or_else(|| Error::invalid(format!("`phase` must be TRAIN or TEST, found {}", v.describe())))?,
        };
        let has = |stage: &String| self.stages.contains(stage);
        Ok(phase == TEST
            && number(rule, "min_level")?.is_none_or(|n| self.level >= n)
            && number(rule, "max_level")?.is_none_or(|n| self.level <= n)
            && words(rule, "stage").iter().all(has)
            && !words(rule, "not_stage").iter().any(has))
    }
}

fn rules<'m>(layer: &'m Message, name: &'m str) -> Result<Vec<&'m Message>> {
    let message = |(at, v): (Position, &'m Value)| {
        let found = v.as_message();
        found.ok_or_else(|| misplaced(at, format!("`{name}` must be a message, found {}", v.describe())))
    };
    layer.all(name).map(message).collect()
}

fn number(m: &Message, name: &str) -> Result<Option<i64>> {
    let read = |v: &Value| {
        v.as_i64().ok_or_else(|| Error::invalid(format!("`{name}` must be a whole number, found {}", v.describe())))
    };
    m.get(name).map(read).transpose()
}

fn words(m: &Message, name: &str) -> Vec<String> {
    m.all(name).filter_map(|(_, v)| v.as_str()).map(str::to_string).collect()
}
