//! What a library in C does with whole graphs: reads them back from IR, copies them, writes them as text.

use carafe::{ElementType, Model, PartialShape, Tensor, ops};
use carafe_testkit::libraries::Workshop;

/// A rewrite that changes nothing and says by its number of firings which of its checks held.
const SOURCE: &str = r#"
#include "carafe.h"
CARAFE_LIBRARY
static CarafeStatus count(void *sink, const void *data, size_t bytes) {
    (void)data;
    *(size_t *)sink += bytes;
    return CARAFE_OK;
}
static CarafeStatus refuse(void *sink, const void *data, size_t bytes) {
    (void)sink, (void)data, (void)bytes;
    return carafe_fail(carafe, CARAFE_IO, "the disk is full");
}
static size_t nodes_of(CarafeGraph *g) {
    const uint32_t *ids;
    size_t n = 0;
    return g->fns->nodes(g, &ids, &n) == CARAFE_OK ? n : 0;
}
static int rename_first(CarafeGraph *g) {
    const uint32_t *ids;
    size_t n;
    return g->fns->parameters(g, &ids, &n) == CARAFE_OK && n && g->fns->set_name(g, ids[0], carafe_str("renamed")) == CARAFE_OK;
}
static int is_named(CarafeGraph *g, const char *name) {
    const uint32_t *ids;
    size_t n;
    CarafeNodeInfo info;
    return g->fns->parameters(g, &ids, &n) == CARAFE_OK && n && g->fns->node(g, ids[0], &info) == CARAFE_OK &&
           carafe_str_is(info.name, name);
}
static CarafeStatus run(void *user, CarafeGraph *g, size_t *fired) {
    (void)user;
    CarafeStr xml, name;
    const CarafeBuffer *buffers;
    size_t n, bytes = 0, good = 0;
    CarafeGraph *read = NULL, *copy = NULL, *none = (CarafeGraph *)8;
    if (g->fns->ir(g, &xml, &buffers, &n) != CARAFE_OK) return CARAFE_INVALID;
    if (g->fns->read_ir(g, xml, buffers, n, &read) != CARAFE_OK) return CARAFE_INVALID;
    good += nodes_of(read) == nodes_of(g);
    good += !rename_first(read); /* it is shown, not given */
    good += g->fns->model_name(read, &name) == CARAFE_OK && carafe_str_is(name, "m");
    if (read->fns->copy(read, &copy) != CARAFE_OK) return CARAFE_INVALID;
    read->fns->release(read);
    good += rename_first(copy) && is_named(copy, "renamed") && is_named(g, "x"); /* it outlives what it was made of */
    good += copy->fns->write_text(copy, count, &bytes) == CARAFE_OK && bytes > 100;
    good += copy->fns->write_text(copy, refuse, NULL) == CARAFE_IO;
    copy->fns->release(copy);
    /* What is wrong is refused, and leaves the answer alone. */
    good += g->fns->read_ir(g, carafe_str("<net"), NULL, 0, &none) == CARAFE_INVALID;
    good += g->fns->read_ir(g, xml, NULL, 0, &none) != CARAFE_OK; /* the weights are missing */
    good += g->fns->read_ir(g, xml, NULL, 3, &none) != CARAFE_OK;
    good += none == (CarafeGraph *)8;
    good += g->fns->read_ir(g, xml, buffers, n, NULL) == CARAFE_USAGE;
    good += g->fns->copy(g, NULL) == CARAFE_USAGE && g->fns->model_name(g, NULL) == CARAFE_USAGE;
    good += g->fns->can_evaluate(g, 4000000000u) == CARAFE_USAGE;
    *fired = good;
    return CARAFE_OK;
}
CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
    carafe = host;
    CarafePass pass = {.size = sizeof pass, .abi = CARAFE_ABI_MAJOR, .phase = CARAFE_PHASE_BACK, .name = "look", .run = run};
    return r->fns->add_pass(r, &pass);
}
"#;

#[test]
fn graphs_are_read_copied_and_written_and_nonsense_is_refused() {
    let workshop = Workshop::new();
    let core = carafe::core();
    core.add_extension(workshop.c("graphs", SOURCE)).unwrap();
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[2])).unwrap();
    let k = m.constant("k", Tensor::from_slice(&[2], &[1.5f32, 2.5]).unwrap()).unwrap();
    let y = m.add("y", ops::arithmetic::Multiply::default(), &[x, k]).unwrap();
    m.result("out", y.into()).unwrap();
    let passes: Vec<_> = core.extensions().into_iter().flat_map(|e| e.passes).collect();
    let fired = passes[0]
        .pass
        .run(&mut m, &mut carafe::Notes::default().with_registry(std::sync::Arc::new(core.registry())))
        .unwrap();
    assert_eq!(fired, 13);
}
