//! Manual copies. A kernel may have companions `__dma_preload_<entry>` and `__dma_postwrite_<entry>`, which the chip runs before and
//! after each work group to bring data into local memory and back. OpenCL has no such thing, so one kernel calls all three with
//! barriers between, and the copy functions share the work among the items of the group.

use super::bind::BoundStage;
use crate::signature::parameters;
use std::fmt::Write;

const PREFIXES: [&str; 2] = ["__dma_preload_", "__dma_postwrite_"];

// The work items of a group copy every n-th element. Sizes and strides are in bytes, as on the chip.
const COPIES: &str = "\
#define CARAFE_ITEM (get_local_id(0) + get_local_size(0) * (get_local_id(1) + get_local_size(1) * get_local_id(2)))
#define CARAFE_ITEMS (get_local_size(0) * get_local_size(1) * get_local_size(2))
#define CARAFE_COPY(first, step, src, dst, sw, dw, ss, ds, n) do { \\
        const size_t carafe_e = sizeof(*(src)); \\
        for (size_t carafe_i = (first); carafe_i < (size_t)(n) / carafe_e; carafe_i += (step)) { \\
            const size_t carafe_b = carafe_i * carafe_e; \\
            (dst)[((carafe_b / (dw)) * (ds) + carafe_b % (dw)) / carafe_e] = \\
                (src)[((carafe_b / (sw)) * (ss) + carafe_b % (sw)) / carafe_e]; \\
        } \\
    } while (0)
#define CARAFE_COPY_3D(first, step, src, dst, sw, dw, ss, ds, planes, sps, dps, n) do { \\
        for (size_t carafe_p = 0; carafe_p < (size_t)(planes); carafe_p++) { \\
            CARAFE_COPY(first, step, (src) + carafe_p * (sps) / sizeof(*(src)), (dst) + carafe_p * (dps) / sizeof(*(dst)), \\
                        sw, dw, ss, ds, n); \\
        } \\
    } while (0)
#define WorkGroupDmaCreateTransaction(src, dst, n, event) CARAFE_COPY(CARAFE_ITEM, CARAFE_ITEMS, src, dst, n, n, n, n, n)
#define WorkGroupDmaCreateStrideTransaction(src, dst, sw, dw, ss, ds, n, event) \\
    CARAFE_COPY(CARAFE_ITEM, CARAFE_ITEMS, src, dst, sw, dw, ss, ds, n)
#define WorkGroupDmaCreate3DTransaction(src, dst, sw, dw, ss, ds, planes, sps, dps, n, event) \\
    CARAFE_COPY_3D(CARAFE_ITEM, CARAFE_ITEMS, src, dst, sw, dw, ss, ds, planes, sps, dps, n)
#define WorkItemDmaCreateTransaction(src, dst, n, event) CARAFE_COPY(0, 1, src, dst, n, n, n, n, n)
#define WorkItemDmaCreateStrideTransaction(src, dst, sw, dw, ss, ds, n, event) CARAFE_COPY(0, 1, src, dst, sw, dw, ss, ds, n)
#define WorkItemDmaCreate3DTransaction(src, dst, sw, dw, ss, ds, planes, sps, dps, n, event) \\
    CARAFE_COPY_3D(0, 1, src, dst, sw, dw, ss, ds, planes, sps, dps, n)
";

// Where a device has no halves, kernels compute in floats; the device rounds what comes in and goes out.
const NO_HALVES: &str = "\
#define half float
#define half2 float2
#define half3 float3
#define half4 float4
#define half8 float8
#define half16 float16
#define convert_half convert_float
#define convert_half2 convert_float2
#define convert_half3 convert_float3
#define convert_half4 convert_float4
#define convert_half8 convert_float8
#define convert_half16 convert_float16
#define as_half as_float
#undef HALF_MAX
#define HALF_MAX 65504.0f
";

pub(super) fn has_companions(source: &str, entry: &str) -> bool {
    PREFIXES.iter().any(|p| companion(source, p, entry).is_some())
}

fn companion(source: &str, prefix: &str, entry: &str) -> Option<String> {
    let name = format!("{prefix}{entry}");
    parameters(source, &name).ok().flatten().map(|_| name)
}

/// The source to build for a stage, and the name of the kernel in it. Without halves of the device (`has_halves`), `half` is `float`.
pub fn stage_source(stage: &BoundStage, has_halves: bool) -> (String, String) {
    let mut text = String::from(if has_halves { "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n" } else { NO_HALVES });
    text.push_str(COPIES);
    text.push_str(&stage.source);
    let [before, after] = PREFIXES.map(|p| companion(&stage.source, p, &stage.entry));
    if before.is_none() && after.is_none() {
        return (text, stage.entry.clone());
    }
    let entry = format!("carafe_{}", stage.entry);
    let names: Vec<&str> = stage.parameters.iter().map(|p| p.name.as_str()).collect();
    let names = names.join(", ");
    let declared: Vec<&str> = stage.parameters.iter().map(|p| p.declaration()).collect();
    let _ = writeln!(text, "#line 1 \"copies of {}\"\n__kernel void {entry}({}) {{", stage.entry, declared.join(", "));
    let barrier = "    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n";
    if let Some(before) = before {
        let _ = write!(text, "    {before}({names});\n{barrier}");
    }
    let _ = writeln!(text, "    {}({names});", stage.entry);
    if let Some(after) = after {
        let _ = writeln!(text, "{barrier}    {after}({names});");
    }
    text.push_str("}\n");
    (text, entry)
}
