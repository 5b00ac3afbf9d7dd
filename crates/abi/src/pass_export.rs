//! Rewrites of this side as tables for the other.

use crate::crossing::put;
use crate::graph_import::Graph;
use crate::host::tell;
use crate::op_export::c_leak;
use crate::status::guard_into;
use crate::tables::*;
use carafe_graph::{NodeId, Outcome, Phase, Result};
use std::ffi::{c_char, c_void};

/// A rewrite of whole models, for libraries.
pub trait ModelPass: Send + Sync + 'static {
    fn name(&self) -> &str;
    /// Names of rewrites it runs before or after.
    fn before(&self) -> &[&str] {
        &[]
    }
    fn after(&self) -> &[&str] {
        &[]
    }
    /// Whether it runs when nobody asks for it by name.
    fn enabled(&self) -> bool {
        true
    }
    /// How often it fired.
    fn run(&self, graph: &mut Graph<'_>) -> Result<usize>;
}

/// A rewrite that looks at one node at a time, for libraries.
pub trait Matcher: Send + Sync + 'static {
    fn name(&self) -> &str;
    /// Type of the nodes it is asked about; `None` for all.
    fn root(&self) -> Option<&str> {
        None
    }
    fn before(&self) -> &[&str] {
        &[]
    }
    fn after(&self) -> &[&str] {
        &[]
    }
    /// Whether it runs when nobody asks for it by name.
    fn enabled(&self) -> bool {
        true
    }
    fn at(&self, graph: &mut Graph<'_>, root: NodeId) -> Result<Outcome>;
}

// A list of texts that stays for ever.
fn names(list: &[&str]) -> (*const *const c_char, usize) {
    let list: &[*const c_char] = list.iter().map(|n| c_leak(n)).collect::<Vec<_>>().leak();
    (list.as_ptr(), list.len())
}

fn phase_code(phase: Phase) -> u32 {
    match phase {
        Phase::Decoded => CARAFE_PHASE_DECODED,
        Phase::Front => CARAFE_PHASE_FRONT,
        Phase::Middle => CARAFE_PHASE_MIDDLE,
        Phase::Back => CARAFE_PHASE_BACK,
    }
}

fn table(phase: Phase, name: &str, before: &[&str], after: &[&str], user: *mut c_void) -> CarafePass {
    let ((before, n_before), (after, n_after)) = (names(before), names(after));
    CarafePass {
        size: size_of::<CarafePass>(),
        abi: CARAFE_ABI_MAJOR,
        phase: phase_code(phase),
        name: c_leak(name),
        before,
        n_before,
        after,
        n_after,
        user,
        run: None,
        root: std::ptr::null(),
        at: None,
        disabled: 0,
    }
}

pub(crate) fn model_pass_table<P: ModelPass>(phase: Phase, pass: P) -> CarafePass {
    let pass: &P = Box::leak(Box::new(pass));
    let user = (&raw const *pass).cast_mut().cast();
    CarafePass {
        run: Some(run::<P>),
        disabled: usize::from(!pass.enabled()),
        ..table(phase, pass.name(), pass.before(), pass.after(), user)
    }
}

pub(crate) fn matcher_table<M: Matcher>(phase: Phase, matcher: M) -> CarafePass {
    let m: &M = Box::leak(Box::new(matcher));
    let root = m.root().map_or(std::ptr::null(), c_leak);
    let user = (&raw const *m).cast_mut().cast();
    let disabled = usize::from(!m.enabled());
    CarafePass { root, at: Some(at::<M>), disabled, ..table(phase, m.name(), m.before(), m.after(), user) }
}

unsafe extern "C" fn run<P: ModelPass>(user: *mut c_void, g: *mut CarafeGraph, fired: *mut usize) -> CarafeStatus {
    guard_into(
        || {
            // SAFETY: `user` is the pass, which is never freed; the contract passes a live graph and a place to write to.
            unsafe { put(fired, (*user.cast::<P>()).run(&mut Graph::new(g))?, "how often it fired") }
        },
        tell,
    )
}

unsafe extern "C" fn at<M: Matcher>(user: *mut c_void, g: *mut CarafeGraph, id: u32, out: *mut u32) -> CarafeStatus {
    guard_into(
        || {
            // SAFETY: as in `run`.
            let outcome = unsafe { (*user.cast::<M>()).at(&mut Graph::new(g), NodeId(id))? };
            let code = match outcome {
                Outcome::NoMatch => CARAFE_NO_MATCH,
                Outcome::Skip(why) => {
                    tell(&why);
                    CARAFE_SKIPPED
                }
                Outcome::Done => CARAFE_DONE,
            };
            // SAFETY: as in `run`.
            unsafe { put(out, code, "what became of a node") }
        },
        tell,
    )
}
