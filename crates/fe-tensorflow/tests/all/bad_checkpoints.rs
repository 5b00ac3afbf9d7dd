//! Checkpoints that are cut, changed or lie about their shards.

use carafe_fe_tensorflow::TensorFlow;
use carafe_frontend::{FormatOptions, ReadRequest};
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/containers").join(name)
}

/// A checkpoint of the fixtures in a folder of its own.
struct Copy {
    folder: PathBuf,
    graph: PathBuf,
}

impl Copy {
    fn of(checkpoint: &str, test: &str) -> Copy {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("checkpoint-{test}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        for file in std::fs::read_dir(data(checkpoint)).unwrap().map(|f| f.unwrap().path()) {
            std::fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
        }
        Copy { folder, graph: data(checkpoint).join("graph.pb") }
    }
    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.join(name)).unwrap()
    }
    fn put(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.folder.join(name), bytes).unwrap();
    }
    fn read(&self) -> Result<(), String> {
        let checkpoint = self.folder.join("model.ckpt");
        let mut options = FormatOptions::default();
        options.set("input_checkpoint", checkpoint.display().to_string());
        let request = ReadRequest { options: Some(&options), ..ReadRequest::new(&self.graph) };
        carafe_frontend::read(&TensorFlow, &request).map(|_| ()).map_err(|e| e.to_string())
    }
    #[track_caller]
    fn refuses(&self, wanted: &str) {
        let found = self.read().expect_err("the checkpoint is damaged");
        assert!(found.contains(wanted), "wanted `{wanted}`, found `{found}`");
    }
}

const FILES: [(&str, &str); 5] = [
    ("checkpoint_resource", "model.ckpt.index"),
    ("checkpoint_partitioned", "model.ckpt.index"),
    ("checkpoint_sharded", "model.ckpt.index"),
    ("checkpoint_version1", "model.ckpt"),
    ("checkpoint_version1_partitioned", "model.ckpt"),
];

#[test]
fn a_checkpoint_cut_anywhere_is_refused() {
    for (checkpoint, file) in FILES {
        let copy = Copy::of(checkpoint, "cut");
        let whole = copy.bytes(file);
        for end in 0..whole.len() {
            copy.put(file, &whole[..end]);
            assert!(copy.read().is_err(), "{checkpoint} cut at {end}");
        }
    }
}

#[test]
fn a_changed_byte_of_a_checkpoint_never_panics() {
    for (checkpoint, file) in FILES {
        let copy = Copy::of(checkpoint, "changed");
        let whole = copy.bytes(file);
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x81;
            copy.put(file, &bytes);
            let _ = copy.read();
        }
    }
}

#[test]
fn a_shard_that_is_short_or_gone_is_refused() {
    let copy = Copy::of("checkpoint_resource", "shards");
    copy.read().unwrap();
    let shard = "model.ckpt.data-00000-of-00001";
    let whole = copy.bytes(shard);
    copy.put(shard, &whole[..10]);
    copy.refuses("are needed, the shard has 10");
    let mut changed = whole.clone();
    changed[20] ^= 1;
    copy.put(shard, &changed);
    copy.refuses("its checksum is wrong");
    copy.put(shard, &[]);
    copy.refuses("are needed, the shard has 0");
    std::fs::remove_file(copy.folder.join(shard)).unwrap();
    copy.refuses("model.ckpt.data-00000-of-00001");
    std::fs::remove_file(copy.folder.join("model.ckpt.index")).unwrap();
    copy.refuses("model.ckpt");
}
