//! `carafe query`: which node runs where. For HETERO that is the split into sub-models.

use super::{print, print_json, read, use_kernel_files};
use crate::args::QueryArgs;
use crate::explain;
use carafe::multi::SubModelReport;
use carafe::{Core, Properties, Result};
use serde_json::json;
use std::fmt::Write;

pub(crate) fn run(core: &Core, args: &QueryArgs) -> Result<()> {
    use_kernel_files(core, &args.device, &args.config)?;
    let model = read(core, &args.model, args.explain)?;
    // The rewrites of extensions are part of what runs.
    let model = core.as_compiled(&model)?.unwrap_or(model);
    if args.device == "HETERO" || args.device.starts_with("HETERO:") {
        let report = carafe::partition(core, &model, &args.device, &Properties::new())?;
        let mut rows = core.explain(&model);
        for row in &mut rows {
            let holds = |s: &&SubModelReport| s.nodes.iter().any(|(name, _)| *name == row.name);
            row.device = report.sub_models.iter().find(holds).map(|s| s.device.clone());
        }
        return match serde_json::from_str::<serde_json::Value>(&report.to_json()) {
            Ok(mut value) if args.json => {
                if args.explain {
                    value["explain"] = explain::list(&rows);
                }
                print_json(&value)
            }
            _ if args.explain => print(&format!("{report}{}", explain::table(&rows))),
            _ => print(&report.to_string()),
        };
    }
    let query = core.query_model(&model, &args.device, &Properties::new())?;
    let mut rows = core.explain(&model);
    core.explain_query(&mut rows, &args.device, &query);
    if args.json {
        let supported: serde_json::Map<_, _> =
            query.supported.iter().map(|n| (n.clone(), json!(args.device))).collect();
        let unsupported: Vec<_> = query
            .unsupported
            .iter()
            .map(|u| json!({"name": u.name, "type": u.type_name, "reason": u.reason}))
            .collect();
        let mut all = json!({"device": args.device, "supported": supported, "unsupported": unsupported});
        if args.explain {
            all["explain"] = explain::list(&rows);
        }
        return print_json(&all);
    }
    let mut out = String::new();
    for (_, node) in model.nodes() {
        let location = if query.supported.iter().any(|n| n == node.name()) { args.device.as_str() } else { "-" };
        let _ = writeln!(out, "{location:<10} {} ({})", node.name(), node.op().type_name());
    }
    let total = query.supported.len() + query.unsupported.len();
    let _ = writeln!(out, "{} of {total} nodes run on {}", query.supported.len(), args.device);
    for u in &query.unsupported {
        let _ = writeln!(out, "unsupported: `{}` ({}): {}", u.name, u.type_name, u.reason);
    }
    if args.explain {
        out.push_str(&explain::table(&rows));
    }
    print(&out)
}
