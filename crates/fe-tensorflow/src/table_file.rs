//! Tables that are lines of a file: a vocabulary, which may lie among the assets of a SavedModel.

use crate::initial::TextFile;
use crate::store::Store;
use crate::tensor::tensor;
use carafe_frontend::SourceNode;
use carafe_graph::{AttrValue, Error, Result};
use carafe_tensor::{ElementType, Tensor, files};
use std::collections::HashMap;
use std::path::PathBuf;

/// A file that fills a table.
#[derive(Debug)]
pub(crate) struct TableFile {
    path: Result<PathBuf>,
    key: (i64, ElementType),
    value: (i64, ElementType),
    lines: i64,
    delimiter: String,
    offset: i64,
}

impl TableFile {
    /// The file that a node of initialisation names, for the table of a node.
    pub(crate) fn of(
        file: &TextFile<'_>,
        table: &SourceNode,
        assets: &HashMap<String, PathBuf>,
        store: &Store,
    ) -> TableFile {
        let ty = |name: &str, default: ElementType| match table.attrs.get(name) {
            Some(AttrValue::Type(ty)) => *ty,
            _ => default,
        };
        let path = assets.get(&file.path.name).cloned().ok_or_else(|| {
            let text = file.path.get("value").and_then(|v| v.tensor.as_ref()).and_then(|t| tensor(t, store).ok());
            let text = text.as_ref().and_then(|t| t.strings().ok()?.first().cloned()).unwrap_or_default();
            // A path that is no asset means a file of the machine that wrote the model.
            Error::unsupported(format!("the table is filled from `{text}`, which is no asset of the model"))
        });
        TableFile {
            path,
            key: (file.key_index, ty("key_dtype", ElementType::String)),
            value: (file.value_index, ty("value_dtype", ElementType::I64)),
            lines: file.lines,
            delimiter: file.delimiter.clone(),
            offset: file.offset,
        }
    }
    /// The keys.
    pub(crate) fn keys(&self) -> Result<Tensor> {
        self.column(self.key)
    }
    /// The values.
    pub(crate) fn values(&self) -> Result<Tensor> {
        self.column(self.value)
    }

    fn column(&self, (index, ty): (i64, ElementType)) -> Result<Tensor> {
        let path = self.path.clone()?;
        let at = |e: Error| e.at(format!("asset `{}`", path.display()));
        let text = files::read_text(&path).map_err(|e| at(Error::io("cannot read", &e)))?;
        let first = usize::try_from(self.offset).unwrap_or(0);
        let most = usize::try_from(self.lines).unwrap_or(usize::MAX);
        let cells = text.lines().skip(first).take(most).enumerate().map(|(number, line)| match index {
            -1 => Ok(number.to_string()),
            -2 => Ok(line.to_string()),
            n => {
                let n = usize::try_from(n).ok();
                let cell = n.and_then(|n| line.split(self.delimiter.as_str()).nth(n)).map(str::to_string);
                cell.ok_or_else(|| Error::invalid(format!("line {} has no column {index}", number + 1)))
            }
        });
        let cells = cells.collect::<Result<Vec<String>>>().map_err(at)?;
        typed(cells, ty).map_err(at)
    }
}

fn typed(cells: Vec<String>, ty: ElementType) -> Result<Tensor> {
    let shape = [cells.len()];
    if ty == ElementType::String {
        return Ok(Tensor::from_strings(&shape, cells)?);
    }
    let bad = |cell: &str| Error::invalid(format!("`{cell}` is no {ty}"));
    if matches!(ty, ElementType::I64 | ElementType::I32) {
        let numbers = cells.iter().map(|c| c.trim().parse::<i64>().map_err(|_| bad(c))).collect::<Result<Vec<_>>>()?;
        return Ok(Tensor::from_i64(ty, &shape, &numbers)?);
    }
    let numbers = cells.iter().map(|c| c.trim().parse::<f64>().map_err(|_| bad(c))).collect::<Result<Vec<_>>>()?;
    Ok(Tensor::from_f64(ty, &shape, &numbers)?)
}
