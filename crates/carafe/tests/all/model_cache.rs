//! The cache of compiled models: when it is used, and that no trouble with it stops a compilation.

use carafe::ops::{activation::Elu, arithmetic::Add};
use carafe::{
    AsyncInferQueue, CacheStore, CompiledModel, Core, ElementType, ErrorKind, Extension, Model, Properties,
    SharedBytes, Tensor,
};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

fn folder(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cache_{name}"));
    let _ = fs::remove_dir_all(&dir);
    let _ = fs::remove_file(&dir);
    dir
}

/// y = x + c
fn model(c: f32, name: &str) -> Model {
    let mut m = Model::new(name);
    let x = m.parameter("x", ElementType::F32, "?".parse().unwrap()).unwrap();
    let c = m.constant("c", Tensor::from_slice(&[1], &[c]).unwrap()).unwrap();
    let y = m.add("y", Add::default(), &[x, c]).unwrap();
    m.result("out", y.into()).unwrap();
    m
}

/// A Core that keeps its warnings.
fn core() -> (Core, Arc<Mutex<Vec<String>>>) {
    let (core, heard) = (carafe::core(), Arc::new(Mutex::new(vec![])));
    let told = heard.clone();
    core.set_log_hook(carafe::log::Level::Warning, move |_, text| told.lock().unwrap().push(text.to_string()));
    (core, heard)
}

fn in_dir(dir: &Path) -> Properties {
    Properties::new().with("CACHE_DIR", dir.display())
}

fn from_cache(compiled: &CompiledModel) -> bool {
    compiled.property("LOADED_FROM_CACHE").unwrap() == "true"
}

/// Compiles, checks that the result is right, and says whether it came from the cache and what was warned of.
fn compile_with(m: &Model, properties: &Properties) -> (bool, Vec<String>) {
    let (core, heard) = core();
    let compiled = core.compile_model(m, "TEMPLATE", properties).unwrap();
    let request = compiled.create_infer_request();
    request.set_input(0, Tensor::from_slice(&[2], &[1f32, 2.0]).unwrap()).unwrap();
    request.infer(()).unwrap();
    let y = request.output(0).unwrap().as_slice::<f32>().unwrap().to_vec();
    assert_eq!(y[1] - y[0], 1.0);
    (from_cache(&compiled), std::mem::take(&mut heard.lock().unwrap()))
}

fn compile(m: &Model, dir: &Path) -> bool {
    let (hit, warnings) = compile_with(m, &in_dir(dir));
    assert_eq!(warnings, Vec::<String>::new());
    hit
}

/// The only entry.
fn entry(dir: &Path) -> PathBuf {
    let all = CacheStore::new(dir).list().unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].path.clone()
}

#[test]
fn the_second_compilation_is_loaded_and_computes_the_same() {
    let dir = folder("second").join("made/on/demand");
    let m = model(3.0, "m");
    assert_eq!([compile(&m, &dir), compile(&m, &dir), compile(&m, &dir)], [false, true, true]);
    let info = CacheStore::new(&dir).list().unwrap()[0].info.clone().unwrap();
    assert_eq!((&*info.device, &*info.version, &*info.model), ("TEMPLATE", carafe::VERSION, "m"));
}

#[test]
fn a_loaded_model_runs_on_when_its_entry_is_cut_short() {
    let dir = folder("cut");
    compile(&model(3.0, "m"), &dir);
    let compiled = core().0.compile_model(&model(3.0, "m"), "TEMPLATE", &in_dir(&dir)).unwrap();
    assert!(from_cache(&compiled));
    File::options().write(true).open(entry(&dir)).unwrap().set_len(0).unwrap();
    let request = compiled.create_infer_request();
    request.set_input(0, Tensor::from_slice(&[1], &[1f32]).unwrap()).unwrap();
    request.infer(()).unwrap();
    assert_eq!(request.output(0).unwrap().as_slice::<f32>().unwrap(), [4.0]);
}

#[test]
fn without_a_folder_nothing_is_loaded() {
    let m = model(1.0, "m");
    assert!(!compile_with(&m, &Properties::new()).0);
    assert!(!compile_with(&m, &Properties::new().with("CACHE_DIR", "")).0);
}

#[test]
fn weights_names_attributes_shapes_and_properties_make_another_entry() {
    let dir = folder("key");
    let base = model(1.0, "m");
    compile(&base, &dir);
    let mut named = base.clone();
    named.set_name(named.find_node("y").unwrap(), "z");
    let mut shaped = base.clone();
    shaped.reshape(&[(0, "2".parse().unwrap())].into()).unwrap();
    let mut informed = base.clone();
    informed.rt_info_mut(informed.find_node("y").unwrap()).mark("precise");
    for (what, other) in [("weights", model(1.5, "m")), ("name", named), ("shape", shaped), ("info", informed)] {
        assert!(!compile(&other, &dir), "{what}");
        assert!(compile(&other, &dir), "{what}");
    }
    let profiled = in_dir(&dir).with("PERF_COUNT", "true");
    assert_eq!([compile_with(&base, &profiled).0, compile_with(&base, &profiled).0], [false, true]);
    // Ids of nodes do not count.
    let mut renumbered = Model::new("m");
    let c = renumbered.constant("c", Tensor::from_slice(&[1], &[1f32]).unwrap()).unwrap();
    let x = renumbered.parameter("x", ElementType::F32, "?".parse().unwrap()).unwrap();
    let y = renumbered.add("y", Add::default(), &[x, c]).unwrap();
    renumbered.result("out", y.into()).unwrap();
    assert!(compile(&renumbered, &dir));
}

#[test]
fn another_version_of_an_extension_makes_another_entry() {
    let dir = folder("extension");
    let compile = |version: &str| {
        let (core, _) = core();
        core.add_extension(Extension { version: version.into(), ..Extension::new("acme") }).unwrap();
        from_cache(&core.compile_model(&model(1.0, "m"), "TEMPLATE", &in_dir(&dir)).unwrap())
    };
    assert_eq!(["1", "1", "2", "2", "1"].map(compile), [false, true, false, true, true]);
}

#[test]
fn an_attribute_makes_another_entry() {
    let dir = folder("attribute");
    let elu = |alpha| {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, "?".parse().unwrap()).unwrap();
        let y = m.add("y", Elu { alpha }, &[x]).unwrap();
        m.result("out", y.into()).unwrap();
        m
    };
    let next = f64::from_bits(1f64.to_bits() + 1);
    assert_eq!([1.0, 1.0, next, next].map(|alpha| compile(&elu(alpha), &dir)), [false, true, false, true]);
}

#[test]
fn what_is_loaded_is_profiled_as_asked_and_runs_asynchronously() {
    let dir = folder("loaded");
    let (core, _) = core();
    let properties = in_dir(&dir).with("PERF_COUNT", true);
    core.compile_model(&model(1.0, "m"), "TEMPLATE", &properties).unwrap();
    let compiled = core.compile_model(&model(1.0, "m"), "TEMPLATE", &properties).unwrap();
    assert!(from_cache(&compiled));
    assert_eq!(compiled.property("PERF_COUNT").unwrap(), "true");
    assert_eq!(compiled.property("CACHE_DIR").unwrap(), dir.display().to_string());
    // The file may go while it is in use.
    CacheStore::new(&dir).clear().unwrap();
    let queue = AsyncInferQueue::new(&compiled, 2).unwrap();
    for _ in 0..10 {
        queue.start_async([(0, Tensor::zeros(ElementType::F32, &[4]).unwrap())], ()).unwrap();
    }
    queue.wait_all().unwrap();
    assert!(!queue.request(0).unwrap().profile().unwrap().is_empty());
}

#[test]
fn the_folder_is_set_for_all_devices_or_for_one() {
    let dir = folder("core_wide");
    for device in ["", "TEMPLATE"] {
        let _ = fs::remove_dir_all(&dir);
        let (core, _) = core();
        core.set_property(device, &in_dir(&dir)).unwrap();
        assert_eq!(core.get_property("TEMPLATE", "CACHE_DIR").unwrap(), dir.display().to_string());
        let compile = |p: &Properties| from_cache(&core.compile_model(&model(1.0, "m"), "TEMPLATE", p).unwrap());
        assert_eq!([compile(&Properties::new()), compile(&Properties::new())], [false, true]);
        // The call has the last word.
        assert!(!compile(&Properties::new().with("CACHE_DIR", "")));
    }
}

#[test]
fn wrong_values_of_the_properties_are_refused() {
    let (core, _) = core();
    let bad = Properties::new().with("CACHE_SIZE_LIMIT", "much");
    assert_eq!(core.set_property("", &bad).unwrap_err().kind(), ErrorKind::Usage);
    let done = core.compile_model(&model(1.0, "m"), "TEMPLATE", &bad);
    assert_eq!(done.err().unwrap().kind(), ErrorKind::Usage);
    let unknown = core.set_property("", &Properties::new().with("PERF_COUNT", true)).unwrap_err();
    assert!(unknown.to_string().contains("known: CACHE_DIR, CACHE_SIZE_LIMIT"), "{unknown}");
}

#[test]
fn a_damaged_entry_is_replaced() {
    let dir = folder("damaged");
    let m = model(1.0, "m");
    compile(&m, &dir);
    let path = entry(&dir);
    let whole = fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let mut headless = whole.clone();
    headless[..64].fill(0);
    let damages: [(&str, &[u8]); 5] = [
        ("empty", b""),
        ("foreign", b"#!/bin/sh\necho not a model\n"),
        ("half written", &whole[..whole.len() / 2]),
        ("flipped", &flipped),
        ("headless", &headless),
    ];
    for (what, bytes) in damages {
        fs::write(&path, bytes).unwrap();
        let (hit, warnings) = compile_with(&m, &in_dir(&dir));
        assert!(!hit && warnings.len() == 1 && warnings[0].contains("removed `"), "{what}: {warnings:?}");
        assert!(compile(&m, &dir), "{what}");
        assert_eq!(fs::read(&path).unwrap(), whole, "{what}");
    }
}

#[test]
fn an_entry_that_the_device_refuses_is_replaced() {
    let dir = folder("refused");
    let m = model(1.0, "m");
    compile(&m, &dir);
    let path = entry(&dir);
    // The entry of another model under this one's name.
    compile(&model(2.0, "m"), &dir);
    let other = CacheStore::new(&dir).list().unwrap().into_iter().find(|e| e.path != path).unwrap();
    fs::rename(other.path, &path).unwrap();
    let (hit, warnings) = compile_with(&m, &in_dir(&dir));
    assert!(!hit && warnings[0].contains("another model"), "{warnings:?}");
    assert!(compile(&m, &dir));
}

#[test]
fn a_folder_that_cannot_be_made_or_written_is_a_warning() {
    let file = folder("is_a_file");
    fs::write(&file, "in the way").unwrap();
    for dir in [file.clone(), file.join("below"), PathBuf::from("/proc/no/such"), PathBuf::from("/dev/full")] {
        let (hit, warnings) = compile_with(&model(1.0, "m"), &in_dir(&dir));
        assert!(!hit && !warnings.is_empty(), "{}", dir.display());
        assert!(warnings.last().unwrap().contains("was not put into the cache"), "{warnings:?}");
    }
    assert_eq!(fs::read_to_string(file).unwrap(), "in the way");
}

#[test]
fn a_folder_in_the_place_of_an_entry_is_a_warning() {
    let dir = folder("folder_entry");
    compile(&model(1.0, "m"), &dir);
    let path = entry(&dir);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let (hit, warnings) = compile_with(&model(1.0, "m"), &in_dir(&dir));
    assert!(!hit && warnings.len() == 2, "{warnings:?}");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "no part is left behind");
}

#[test]
fn the_entry_longest_unused_makes_room() {
    let dir = folder("lru");
    let models: Vec<Model> = (0..4).map(|i| model(i as f32, "m")).collect();
    compile(&models[0], &dir);
    let size = fs::metadata(entry(&dir)).unwrap().len();
    let limited = in_dir(&dir).with("CACHE_SIZE_LIMIT", size * 3 + size / 2);
    let age = |seconds| {
        for e in CacheStore::new(&dir).list().unwrap() {
            let back = e.last_used - Duration::from_secs(seconds);
            File::open(e.path).unwrap().set_modified(back).unwrap();
        }
    };
    for m in &models[1..3] {
        age(10);
        assert!(!compile_with(m, &limited).0);
    }
    // The first is used again, so the second goes.
    age(10);
    assert!(compile_with(&models[0], &limited).0);
    age(10);
    assert!(!compile_with(&models[3], &limited).0);
    let hits = [0, 2, 3].map(|i: usize| compile_with(&models[i], &limited).0);
    assert_eq!((hits, CacheStore::new(&dir).list().unwrap().len()), ([true; 3], 3));
    assert!(!compile_with(&models[1], &limited).0);
}

#[test]
fn an_entry_over_the_limit_is_not_kept() {
    let dir = folder("too_large");
    let limited = in_dir(&dir).with("CACHE_SIZE_LIMIT", 10);
    let (hit, warnings) = compile_with(&model(1.0, "m"), &limited);
    assert!(!hit && warnings[0].contains("over the limit of 10"), "{warnings:?}");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn pruning_and_clearing_leave_foreign_files_alone() {
    let dir = folder("prune");
    compile(&model(1.0, "m"), &dir);
    let store = CacheStore::new(&dir);
    let stale = dir.join(format!("{:032x}.blob", 1));
    let (left, fresh) = (dir.join(format!("{:032x}.1-0.part", 2)), dir.join(format!("{:032x}.1-1.part", 3)));
    let foreign = ["notes.blob", "a.part", "readme.txt"].map(|n| dir.join(n));
    for path in foreign.iter().chain([&stale, &left, &fresh]) {
        fs::write(path, "x").unwrap();
    }
    File::open(&left).unwrap().set_modified(SystemTime::now() - Duration::from_secs(86_400)).unwrap();
    assert_eq!(store.list().unwrap().len(), 2);
    assert_eq!(store.prune(None).unwrap().entries, 2);
    assert!(fresh.exists() && !stale.exists() && !left.exists());
    assert!(compile(&model(1.0, "m"), &dir));
    assert_eq!(store.clear().unwrap().entries, 2);
    assert!(foreign.iter().all(|f| f.exists()) && store.list().unwrap().is_empty());
    assert!(CacheStore::new(dir.join("absent")).list().unwrap().is_empty());
}

#[test]
fn many_threads_compile_at_once() {
    let dir = folder("threads");
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for round in 0..20 {
                    assert!(compile_with(&model((round % 5) as f32, "m"), &in_dir(&dir)).1.is_empty());
                }
            });
        }
    });
    assert!(CacheStore::new(&dir).list().unwrap().iter().all(|e| !e.is_stale()));
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 5);
}

#[test]
fn a_device_that_cannot_export_is_not_cached() {
    let dir = folder("no_export");
    let (core, heard) = core();
    core.add_device("FIXED", Arc::new(Fixed)).unwrap();
    for _ in 0..2 {
        let compiled = core.compile_model(&model(1.0, "m"), "FIXED", &in_dir(&dir)).unwrap();
        assert!(!from_cache(&compiled));
    }
    assert!(!dir.exists() && heard.lock().unwrap().is_empty());
}

/// TEMPLATE without export.
struct Fixed;

impl carafe::device::Device for Fixed {
    fn properties(&self) -> &'static [carafe::PropertyInfo] {
        &[]
    }
    fn metric(&self, name: &str) -> carafe::Result<String> {
        Err(carafe::Error::not_found(name))
    }
    fn query(&self, _: &Model, _: &Properties) -> carafe::Result<carafe::Query> {
        Ok(carafe::Query::default())
    }
    fn compile(
        &self,
        model: &Model,
        properties: &Properties,
    ) -> carafe::Result<Arc<dyn carafe::device::CompiledModel>> {
        carafe::core().device("TEMPLATE")?.compile(model, properties)
    }
    fn import(
        &self,
        _: SharedBytes,
        _: &carafe::Registry,
        _: &Properties,
    ) -> carafe::Result<Arc<dyn carafe::device::CompiledModel>> {
        Err(carafe::Error::unsupported("FIXED imports nothing"))
    }
}
