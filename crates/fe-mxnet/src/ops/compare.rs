//! Comparisons and logic. The old operators give zeros and ones in the type of the data, those of mxnet.numpy give booleans.

use super::arithmetic::operands;
use super::cx::MxCx;
use super::scalars::number;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::compare::NotEqual;
use carafe_ops::logic::LogicalXor;
use carafe_tensor::ElementType;

type Test = fn(&mut NodeCx<'_>, Value, Value) -> Result<Value>;

macro_rules! tests {
    ($($test:ident: [$($tensors:literal),*], [$($scalars:literal),*], [$($booleans:literal),*], [$($scalar_booleans:literal),*];)*) => {
        pub(super) const RULES: &[StaticRule] = &[
            $(
                $(rule($tensors, 0, |n| numbers(n, $test)),)*
                $(rule($scalars, 0, |n| scalar_numbers(n, $test)),)*
                $(rule($booleans, 0, |n| booleans(n, $test)),)*
                $(rule($scalar_booleans, 0, |n| scalar_booleans(n, $test)),)*
            )*
        ];
    };
}

tests! {
    equal: ["_equal", "broadcast_equal"], ["_equal_scalar"], ["_npi_equal"], ["_npi_equal_scalar"];
    not_equal: ["_not_equal", "broadcast_not_equal"], ["_not_equal_scalar"], ["_npi_not_equal"], ["_npi_not_equal_scalar"];
    greater: ["_greater", "broadcast_greater"], ["_greater_scalar"], ["_npi_greater"], ["_npi_greater_scalar"];
    greater_equal: ["_greater_equal", "broadcast_greater_equal"], ["_greater_equal_scalar"], ["_npi_greater_equal"],
        ["_npi_greater_equal_scalar"];
    less: ["_lesser", "broadcast_lesser"], ["_lesser_scalar"], ["_npi_less"], ["_npi_less_scalar"];
    less_equal: ["_lesser_equal", "broadcast_lesser_equal"], ["_lesser_equal_scalar"], ["_npi_less_equal"],
        ["_npi_less_equal_scalar"];
    and: ["_logical_and", "broadcast_logical_and"], ["_logical_and_scalar"], [], [];
    or: ["_logical_or", "broadcast_logical_or"], ["_logical_or_scalar"], [], [];
    xor: ["_logical_xor", "broadcast_logical_xor"], ["_logical_xor_scalar"], [], [];
}

fn equal(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    n.equal(a, b)
}
fn not_equal(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    n.emit(NotEqual::default(), &[a, b])
}
fn greater(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    n.greater(a, b)
}
fn greater_equal(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    n.greater_equal(a, b)
}
fn less(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    n.less(a, b)
}
fn less_equal(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    n.less_equal(a, b)
}
fn and(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    let (a, b) = (n.as_condition(a)?, n.as_condition(b)?);
    n.and(a, b)
}
fn or(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    let (a, b) = (n.as_condition(a)?, n.as_condition(b)?);
    n.or(a, b)
}
fn xor(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    let (a, b) = (n.as_condition(a)?, n.as_condition(b)?);
    n.emit(LogicalXor::default(), &[a, b])
}

fn numbers(n: &mut NodeCx<'_>, test: Test) -> Result<Outputs> {
    let (a, b) = operands(n)?;
    let found = test(n, a, b)?;
    Ok(n.as_numbers(found, a)?.into())
}

fn scalar_numbers(n: &mut NodeCx<'_>, test: Test) -> Result<Outputs> {
    let (x, number) = number(n)?;
    let found = test(n, x, number)?;
    Ok(n.as_numbers(found, x)?.into())
}

fn booleans(n: &mut NodeCx<'_>, test: Test) -> Result<Outputs> {
    let (a, b) = operands(n)?;
    Ok(test(n, a, b)?.into())
}

fn scalar_booleans(n: &mut NodeCx<'_>, test: Test) -> Result<Outputs> {
    let x = n.input(0)?;
    let number = n.float("scalar", 1.0)?;
    // A whole number is compared with what lies between two of them as a float.
    let x = if n.ty(x).is_float() { x } else { n.convert(x, ElementType::F64)? };
    let number = n.scalar_like(x, number)?;
    Ok(test(n, x, number)?.into())
}
