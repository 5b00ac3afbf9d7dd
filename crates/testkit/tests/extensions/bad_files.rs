//! Files that cannot be loaded: each reason is told apart, with the name of the file, and the core goes on.

use crate::support::*;
use carafe::ErrorKind;
use carafe_testkit::libraries::Workshop;
use std::path::Path;

#[track_caller]
fn refused(path: &Path, wanted: &[&str]) -> ErrorKind {
    let core = carafe::core();
    let error = core.add_extension(path).expect_err("this must be refused");
    let text = error.to_string();
    let file = path.file_name().unwrap().to_string_lossy().into_owned();
    for w in wanted.iter().chain([&file.as_str()]) {
        assert!(text.contains(w), "wanted `{w}` in `{text}`");
    }
    assert!(core.extensions().is_empty());
    goes_on(&core);
    error.kind()
}

const EMPTY: &str =
    "CARAFE_C CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
    (void)host, (void)r;
    return CARAFE_OK;
}
";

#[test]
fn no_such_file() {
    assert_eq!(refused(Path::new("/nowhere/libnothing.so"), &["there is no such file"]), ErrorKind::NotFound);
    assert_eq!(refused(Path::new("libcarafe_nothing.so"), &["there is no such file"]), ErrorKind::NotFound);
}

#[test]
fn a_missing_dependency_is_named() {
    let shop = Workshop::new();
    let dependency = shop.c("acme_helper", "int acme_help(void) { return 1; }");
    let source = shop.write(
        "needs.c",
        format!("#include \"carafe.h\"\nint acme_help(void);\nCARAFE_LIBRARY\n{EMPTY}int use(void) {{ return acme_help() + (carafe != 0); }}"),
    );
    let folder = format!("-L{}", shop.path("").display());
    let library = shop.build("cc", "needs", &[&folder, "-lacme_helper"], &source);
    std::fs::remove_file(dependency).unwrap();
    assert_eq!(refused(&library, &["it needs `libacme_helper.so`", "LD_LIBRARY_PATH"]), ErrorKind::NotFound);
}

#[test]
fn a_missing_symbol_is_named() {
    let shop = Workshop::new();
    let source = format!(
        "#include \"carafe.h\"\nint acme_gone(void);\nCARAFE_LIBRARY\n{EMPTY}int use(void) {{ return acme_gone() + (carafe != 0); }}"
    );
    refused(&shop.c("gone", &source), &["acme_gone"]);
}

#[test]
fn not_a_library() {
    let shop = Workshop::new();
    refused(&shop.write("text.so", "this is a text, and long enough for a header"), &["not a dynamic library"]);
    refused(&shop.write("empty.so", ""), &["not a dynamic library", "too short"]);
    let object = shop.write("object.c", "int x;");
    refused(
        &shop.build("cc", "object", &["-c", "-no-pie", "-Wno-unused-command-line-argument"], &object),
        &["not a dynamic library"],
    );
    std::fs::create_dir(shop.path("folder.so")).unwrap();
    refused(&shop.path("folder.so"), &["library"]);
}

#[test]
fn a_cut_library() {
    let shop = Workshop::new();
    let whole = shop
        .c("whole", &format!("#include \"carafe.h\"\nCARAFE_LIBRARY\n{EMPTY}const void *u(void) {{ return carafe; }}"));
    let bytes = std::fs::read(whole).unwrap();
    for n in [20, 64, 200, 1000] {
        refused(&shop.write(&format!("cut{n}.so"), &bytes[..n]), &["cut"]);
    }
}

#[test]
fn a_library_for_another_machine() {
    let shop = Workshop::new();
    let mut elf = vec![0u8; 64];
    elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    (elf[16], elf[18]) = (3, if cfg!(target_arch = "aarch64") { 62 } else { 183 });
    let wanted = if cfg!(target_arch = "aarch64") { "x86_64 (64 bit)" } else { "aarch64 (64 bit)" };
    assert_eq!(refused(&shop.write("arm.so", &elf), &["built for", wanted]), ErrorKind::Unsupported);
    (elf[4], elf[18]) = (1, 3);
    refused(&shop.write("old.so", &elf), &["built for x86 (32 bit)"]);
}

#[test]
fn a_library_of_another_kind() {
    let shop = Workshop::new();
    refused(&shop.c("plain", "int x(void) { return 1; }"), &["not a Carafe library", "carafe_abi"]);
    let foreign = "int create_extensions(void *v) { return v != 0; }";
    refused(&shop.c("foreign", foreign), &["not a Carafe library", "OpenVINO"]);
    let bare = "#include \"carafe.h\"\nCARAFE_LIBRARY\nconst void *u(void) { return carafe; }";
    refused(&shop.c("bare", bare), &["exports no `create_extensions`"]);
}

#[test]
fn a_library_for_other_tables() {
    let shop = Workshop::new();
    let with = |abi: &str| format!("#include \"carafe.h\"\nCARAFE_EXPORT const CarafeAbi carafe_abi = {abi};\n{EMPTY}");
    let other = shop.c("other_major", &with("{CARAFE_ABI_MAGIC, 99, 3, sizeof(void *)}"));
    assert_eq!(refused(&other, &["ABI 99.3", "this engine speaks 1."]), ErrorKind::Unsupported);
    refused(&shop.c("other_magic", &with("{7, CARAFE_ABI_MAJOR, 0, sizeof(void *)}")), &["not a Carafe library"]);
    refused(&shop.c("other_pointer", &with("{CARAFE_ABI_MAGIC, CARAFE_ABI_MAJOR, 0, 2}")), &["16-bit pointers"]);
}

#[test]
fn create_extensions_that_fails() {
    let shop = Workshop::new();
    let with = |body: &str| {
        format!(
            "#include \"carafe.h\"\nCARAFE_LIBRARY\nCARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {{ carafe = host; (void)r; {body} }}"
        )
    };
    refused(&shop.c("says_why", &with("return carafe_fail(carafe, CARAFE_IO, \"no licence\");")), &["no licence"]);
    refused(&shop.c("says_nothing", &with("return 77;")), &["failed with status 77 and no text"]);
    refused(&shop.c("not_utf8", &with("return carafe_fail(carafe, CARAFE_IO, \"\\xff\\xfe\");")), &["not UTF-8"]);
    let throws = "#include \"carafe.hpp\"\nCARAFE_EXTENSION(r) { (void)r; throw std::runtime_error(\"no licence\"); }";
    refused(&shop.cpp("throws", throws), &["no licence"]);
    let throws = "#include \"carafe.hpp\"\nCARAFE_EXTENSION(r) { (void)r; throw 7; }";
    refused(&shop.cpp("throws_seven", throws), &["an exception that is no std::exception"]);
}

#[test]
fn of_a_list_with_a_bad_one_nothing_is_added() {
    let shop = Workshop::new();
    let core = carafe::core();
    let bad = shop.c("plain", "int x(void) { return 1; }");
    tells(core.add_extension([ALL_KINDS[1].1.clone(), bad]), &["plain"]);
    assert!(core.extensions().is_empty());
    assert!(core.registry().find("Twice", "kinds").is_none());
    goes_on(&core);
}
