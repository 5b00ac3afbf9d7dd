//! Programs of Paddle 3 in JSON. Values have numbers and operands positions; here they become variables and slots as a `ProgramDesc` has
//! them. Operands that stand for attributes become attributes again where they are constants. Lists of values (`builtin.combine`,
//! `builtin.split`) are taken apart.

mod attributes;
mod names;

use crate::program::{Block, Operator, Program, Slot, Variable};
use crate::types;
use attributes::{attribute, text};
use carafe_graph::{AttrValue, Error, ItemType, Result};
use serde_json::Value as Json;
use std::collections::{HashMap, HashSet};

/// Versions of the form that are known; the newest is that of Paddle 3.3.
const NEWEST_FORM: i64 = 4;
/// Programs in JSON exist from here on.
const VERSION: i64 = 3_000_000;
/// Regions inside of each other deeper than this are refused.
const MAX_DEPTH: usize = 32;

/// Operators that write one of their operands, by position: their result is its next value.
const IN_PLACE: &[(&str, usize)] = &[("array_write_", 0), ("assign_out_", 1), ("assign_value_", 0), ("increment_", 0)];

/// Names of dialects, by the numbers that files have for them.
const DIALECTS: &[(&str, &str)] =
    &[("0", "builtin"), ("1", "pd_op"), ("2", "cf"), ("3", "custom_op"), ("4", "pd_dist")];

/// The program in a text.
pub(crate) fn program(text: &[u8]) -> Result<Program> {
    let json: Json =
        serde_json::from_slice(text).map_err(|e| Error::invalid(format!("the JSON of the program: {e}")))?;
    let form = json["base_code"]["version"].as_i64().unwrap_or(0);
    if form > NEWEST_FORM {
        return Err(Error::unsupported(format!(
            "version {form} of programs in JSON; {NEWEST_FORM} is the newest known"
        )));
    }
    let block = block_of(&json["program"]["regions"][0])?;
    let mut reader = Reader::default();
    reader.blocks.push(Block::default());
    let main = reader.block(block, 0)?;
    reader.blocks[0] = main;
    Ok(Program { blocks: reader.blocks, version: VERSION })
}

fn list<'j>(json: &'j Json, key: &str) -> &'j [Json] {
    json[key].as_array().map_or(&[], Vec::as_slice)
}

fn block_of(region: &Json) -> Result<&Json> {
    match list(region, "blocks") {
        [block] => Ok(block),
        blocks => Err(Error::invalid(format!("a region has {} blocks, expected 1", blocks.len()))),
    }
}

#[derive(Default)]
struct Reader {
    blocks: Vec<Block>,
    /// The variables of a value: several for a list.
    values: HashMap<i64, Vec<String>>,
    taken: HashSet<String>,
    /// Variables that are constants, and may stand for attributes.
    constants: HashMap<String, AttrValue>,
}

// The name of an operator as its dialect and its own.
fn split(name: &str) -> (&str, &str) {
    let (dialect, op) = name.split_once('.').unwrap_or(("", name));
    (DIALECTS.iter().find(|(id, _)| *id == dialect).map_or(dialect, |(_, name)| name), op)
}

impl Reader {
    fn block(&mut self, json: &Json, depth: usize) -> Result<Block> {
        if depth > MAX_DEPTH {
            return Err(Error::invalid(format!("regions are nested deeper than {MAX_DEPTH}")));
        }
        let mut block = Block { yields: (depth > 0).then(Vec::new), ..Block::default() };
        for arg in list(json, "args") {
            let id = arg["#"].as_i64().ok_or_else(|| Error::invalid("an argument of a block has no number"))?;
            let names = self.declare(id, &format!("arg_{}", id.unsigned_abs()), &arg["TT"], &mut block);
            block.args.extend(names);
        }
        for (i, op) in list(json, "ops").iter().enumerate() {
            let name = op["#"].as_str().unwrap_or_default();
            let made = self.operator(name, op, &mut block, depth);
            made.map_err(|e| e.at(format!("operator {i} (`{name}`)")))?;
        }
        Ok(block)
    }

    fn operator(&mut self, name: &str, json: &Json, block: &mut Block, depth: usize) -> Result<()> {
        match split(name) {
            (_, "p") => self.parameter(json, block),
            ("builtin", "parameter") => {
                let name = attributes::find(json, "parameter_name").and_then(text).unwrap_or_default();
                self.stored(name, &json["O"][0], block)
            }
            ("builtin", "combine") => {
                let all = self.operands(json).into_iter().flatten().collect();
                self.alias(&json["O"][0], all)
            }
            ("builtin", "split") => {
                let all = self.operands(json).into_iter().flatten().collect::<Vec<_>>();
                let results = list(json, "O");
                if results.len() != all.len() {
                    return Err(Error::invalid(format!("{} results of a list of {}", results.len(), all.len())));
                }
                results.iter().zip(all).try_for_each(|(result, name)| self.alias(result, vec![name]))
            }
            ("builtin", "slice") => {
                let index = attributes::find(json, "index").and_then(|d| d.as_u64()).unwrap_or(0) as usize;
                let all = self.operands(json).into_iter().flatten().nth(index);
                let name = all.ok_or_else(|| Error::invalid(format!("there is no value {index} in the list")))?;
                self.alias(&json["O"][0], vec![name])
            }
            ("builtin", "shadow_output") => {
                let name = attributes::find(json, "output_name").and_then(text).unwrap_or_default();
                self.fetch(name, json, block)
            }
            ("pd_op", "data" | "feed") => self.feed(json, block),
            ("pd_op", "fetch") => {
                let name = attributes::find(json, "name").and_then(text).unwrap_or_default();
                self.fetch(name, json, block)
            }
            ("pd_op", op @ ("if" | "while")) => self.control(op, json, block, depth),
            ("cf", "yield") => {
                let all = self.operands(json).into_iter().flatten().collect();
                block.yields = Some(all);
                Ok(())
            }
            (dialect, op) => {
                let known = (dialect == "pd_op").then(|| names::names(op)).flatten();
                self.plain(op, known, json, block)
            }
        }
    }

    // A new variable for a value, or one for each of a list.
    fn declare(&mut self, id: i64, base: &str, ty: &Json, block: &mut Block) -> Vec<String> {
        let (_, kind) = split(ty["#"].as_str().unwrap_or_default());
        let mut one = |base: String, ty: &Json| {
            let mut name = base;
            while !self.taken.insert(name.clone()) {
                name.push('_');
            }
            block.vars.insert(name.clone(), variable(ty));
            name
        };
        let names = match kind {
            "t_vec" => {
                let inner = list(ty, "D").iter().enumerate();
                inner.map(|(i, ty)| one(format!("{base}.{i}"), ty)).collect()
            }
            _ => vec![one(base.to_string(), ty)],
        };
        self.values.insert(id, names.clone());
        names
    }

    fn alias(&mut self, result: &Json, names: Vec<String>) -> Result<()> {
        let id = result["%"].as_i64().ok_or_else(|| Error::invalid("a result has no number"))?;
        self.values.insert(id, names);
        Ok(())
    }

    // The variables of each operand; none for one that is left out.
    fn operands(&self, json: &Json) -> Vec<Vec<String>> {
        let one = |o: &Json| match o["%"].as_i64() {
            None | Some(0) => vec![],
            Some(id) => self.values.get(&id).cloned().unwrap_or_else(|| vec![format!("%{id}")]),
        };
        list(json, "I").iter().map(one).collect()
    }

    // `A` is whether it is distributed, a parameter and clipped, and the name.
    fn parameter(&mut self, json: &Json, block: &mut Block) -> Result<()> {
        let name = json["A"][3].as_str().ok_or_else(|| Error::invalid("a parameter has no name"))?;
        self.stored(name, &json["O"], block)?;
        // The first of `OA` is whether it is stored: a scratch tensor of an operator is not.
        if json["OA"][0].as_i64() == Some(0)
            && let Some(variable) = block.vars.get_mut(name)
        {
            variable.is_parameter = false;
        }
        Ok(())
    }

    fn stored(&mut self, name: &str, result: &Json, block: &mut Block) -> Result<()> {
        let id = result["%"].as_i64().ok_or_else(|| Error::invalid("a parameter has no number"))?;
        if name.is_empty() || !self.taken.insert(name.to_string()) {
            return Err(Error::invalid(format!("`{name}` is the name of two values")));
        }
        block.vars.insert(name.to_string(), Variable { is_parameter: true, ..variable(&result["TT"]) });
        self.values.insert(id, vec![name.to_string()]);
        Ok(())
    }

    fn feed(&mut self, json: &Json, block: &mut Block) -> Result<()> {
        let name = attributes::find(json, "name").and_then(text).unwrap_or("x");
        let result = &json["O"][0];
        let id = result["%"].as_i64().ok_or_else(|| Error::invalid("an input has no number"))?;
        let vars = self.declare(id, name, &result["TT"], block);
        let mut op = Operator { op_type: "feed".into(), ..Operator::default() };
        op.outputs.push(Slot { name: "Out".into(), vars });
        if let Some(col) = attributes::find(json, "col").and_then(Json::as_i64) {
            op.attrs.set("col", AttrValue::Int(col));
        }
        block.ops.push(op);
        Ok(())
    }

    fn fetch(&mut self, name: &str, json: &Json, block: &mut Block) -> Result<()> {
        let mut op = Operator { op_type: "fetch".into(), ..Operator::default() };
        let vars = self.operands(json).into_iter().flatten().collect();
        op.inputs.push(Slot { name: "X".into(), vars });
        if let Some(col) = attributes::find(json, "col").and_then(Json::as_i64) {
            op.attrs.set("col", AttrValue::Int(col));
        }
        if !name.is_empty() {
            op.attrs.set("label", AttrValue::Str(name.to_string()));
        }
        block.ops.push(op);
        Ok(())
    }

    // Regions become blocks of the program.
    fn control(&mut self, kind: &str, json: &Json, block: &mut Block, depth: usize) -> Result<()> {
        let operands = self.operands(json);
        let mut inputs = operands.into_iter();
        let condition = inputs.next().unwrap_or_default();
        let (op_type, slot) = if kind == "if" { ("conditional_block", "Cond") } else { ("while", "Condition") };
        let mut op = Operator { op_type: op_type.into(), ..Operator::default() };
        op.inputs.push(Slot { name: slot.into(), vars: condition });
        op.inputs.push(Slot { name: "X".into(), vars: inputs.flatten().collect() });
        for (region, attribute) in list(json, "regions").iter().zip(["sub_block", "else_block"]) {
            let inner = self.block(block_of(region)?, depth + 1)?;
            self.blocks.push(inner);
            op.blocks.push((attribute.into(), self.blocks.len() - 1));
        }
        let vars = self.results(op_type, json, block)?.into_iter().flatten().collect();
        op.outputs.push(Slot { name: "Out".into(), vars });
        block.ops.push(op);
        Ok(())
    }

    // New variables for the results of an operator.
    fn results(&mut self, op_type: &str, json: &Json, block: &mut Block) -> Result<Vec<Vec<String>>> {
        let one = |result: &Json| match result["%"].as_i64() {
            Some(0) => Ok(vec![]),
            Some(id) => Ok(self.declare(id, &format!("{op_type}_{id}"), &result["TT"], block)),
            None => Err(Error::invalid("a result has no number")),
        };
        list(json, "O").iter().map(one).collect()
    }

    fn plain(&mut self, name: &str, known: Option<&names::OpNames>, json: &Json, block: &mut Block) -> Result<()> {
        let op_type = known.map_or(name, |n| n.op_type);
        let mut op = Operator { op_type: op_type.to_string(), ..Operator::default() };
        let operands = self.operands(json);
        for (i, vars) in operands.iter().cloned().enumerate() {
            let operand = known.and_then(|n| n.operands.get(i));
            let constant = vars.first().filter(|_| vars.len() == 1).and_then(|v| self.constants.get(v));
            match (operand, constant) {
                (Some(names::Operand { attribute: Some(attribute), .. }), Some(value)) => {
                    op.attrs.set(*attribute, value.clone());
                }
                (Some(operand), _) => op.inputs.push(Slot { name: operand.slot.to_string(), vars }),
                (None, _) => op.inputs.push(Slot { name: "X".into(), vars }),
            }
        }
        let renamed = known.map_or(&[][..], |n| &n.renamed);
        list(json, "A").iter().for_each(|a| attribute(a, renamed, &mut op));
        let in_place = IN_PLACE.iter().find(|(op, _)| *op == name).and_then(|(_, at)| operands.get(*at)).cloned();
        let results = match (in_place, list(json, "O")) {
            (Some(vars), [result]) => {
                self.alias(result, vars.clone())?;
                vec![vars]
            }
            _ => self.results(op_type, json, block)?,
        };
        if let Some([constant]) = results.first().map(Vec::as_slice)
            && let Some(value) = attributes::constant(&op)
        {
            self.constants.insert(constant.clone(), value);
        }
        for (i, vars) in results.into_iter().enumerate() {
            let slot = known.and_then(|n| n.results.get(i).copied()).unwrap_or("Out");
            op.outputs.push(Slot { name: slot.to_string(), vars });
        }
        block.ops.push(op);
        Ok(())
    }
}

// The type of a value: element type and sizes of a tensor, or of the elements of an array.
fn variable(ty: &Json) -> Variable {
    let (_, kind) = split(ty["#"].as_str().unwrap_or_default());
    let is_array = kind == "t_dense_tensor_array" || kind == "t_dtensor_array";
    let element = ty["D"][0]["#"].as_str().map(|t| split(t).1).and_then(types::named);
    let dims: Option<Vec<i64>> = ty["D"][1].as_array().and_then(|d| d.iter().map(Json::as_i64).collect());
    let ty: Result<ItemType> = match (element, dims) {
        (Some(element), Some(dims)) => Ok(types::tensor(element, &dims)),
        _ => Err(Error::unsupported(format!("values of type {ty}"))),
    };
    Variable { ty, is_array, is_parameter: false }
}
