//! Archives in all forms, written here byte by byte as Kaldi does; broken ones end with an error that says where.

use carafe_ark::{ArkError, Entry, Scanner, is_binary, read_ark, read_scp, write_ark, write_text_ark};
use carafe_tensor::Tensor;

fn entry(key: &str, shape: &[usize], values: &[f32]) -> Entry {
    Entry { key: key.into(), value: Tensor::from_slice(shape, values).unwrap() }
}

fn shown(entries: &[Entry]) -> Vec<(String, Vec<usize>, Vec<f32>)> {
    let one = |e: &Entry| (e.key.clone(), e.value.shape().to_vec(), e.value.to_vec::<f32>().unwrap().into_owned());
    entries.iter().map(one).collect()
}

fn error(bytes: &[u8]) -> String {
    read_ark(bytes).unwrap_err().to_string()
}

#[test]
fn what_is_written_is_read_again() {
    let all = [
        entry("one", &[2, 3], &[1.0, -2.5, 3.0, 4.0, 5.0, 1e-30]),
        entry("two", &[2], &[7.0, 8.0]),
        entry("none", &[0, 0], &[]),
    ];
    assert_eq!(shown(&read_ark(&write_ark(&all).unwrap()).unwrap()), shown(&all));
    let text = write_text_ark(&all[..2]).unwrap();
    assert_eq!(text, "one  [\n  1 -2.5 3 \n  4 5 0.000000000000000000000000000001 ]\ntwo  [ 7 8 ]\n");
    assert_eq!(shown(&read_ark(text.as_bytes()).unwrap()), shown(&all[..2]));
}

#[test]
fn doubles_and_the_three_compressed_forms_are_read() {
    let double = b"d \0BDM \x04\x01\0\0\0\x04\x02\0\0\0\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\xc0";
    assert_eq!(shown(&read_ark(double).unwrap()), [("d".into(), vec![1, 2], vec![1.0, -2.0])]);
    // The smallest is 1 and the range 255.
    let header = |rows: u8, cols: u8| [&b"\0\0\x80\x3f\0\0\x7f\x43"[..], &[rows, 0, 0, 0, cols, 0, 0, 0]].concat();
    let bytes = [&b"b \0BCM3 "[..], &header(2, 2), &[0, 1, 2, 255]].concat();
    assert_eq!(shown(&read_ark(&bytes).unwrap()), [("b".into(), vec![2, 2], vec![1.0, 2.0, 3.0, 256.0])]);
    let words = [&b"w \0BCM2 "[..], &header(1, 2), &[0, 0, 0xff, 0xff]].concat();
    assert_eq!(shown(&read_ark(&words).unwrap()), [("w".into(), vec![1, 2], vec![1.0, 256.0])]);
    // One column with marks at 0, a quarter, three quarters and all of the range; bytes on the marks and between them.
    let marks: Vec<u8> = [0u16, 16384, 49151, 65535].iter().flat_map(|m| m.to_le_bytes()).collect();
    let columns = [&b"c \0BCM "[..], &header(6, 1), &marks, &[0, 64, 128, 192, 255, 32]].concat();
    let found = &shown(&read_ark(&columns).unwrap())[0].2;
    let wanted = [1.0, 64.75, 128.5, 192.25, 256.0, 32.875];
    found.iter().zip(wanted).for_each(|(f, w)| assert!((f - w).abs() < 0.01, "{found:?}"));
}

#[test]
fn keys_end_with_a_space_or_with_the_mark() {
    let kaldi = b"a \0BFV \x04\x01\0\0\0\0\0\x80\x3fb \0BFV \x04\x01\0\0\0\0\0\0\x40";
    assert_eq!(read_ark(kaldi).unwrap().iter().map(|e| e.key.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let sample = b"a\0BFM \x04\x01\0\0\0\x04\x01\0\0\0\0\0\x80\x3f";
    assert_eq!(shown(&read_ark(sample).unwrap()), [("a".into(), vec![1, 1], vec![1.0])]);
    assert!(read_ark(b"").unwrap().is_empty() && read_ark(b" \n").unwrap().is_empty());
}

#[test]
fn a_list_says_where_utterances_lie() {
    let ark = write_ark(&[entry("a", &[1, 1], &[1.0]), entry("b", &[1, 1], &[2.0])]).unwrap();
    let second = ark.windows(4).rposition(|w| w == b"\0BFM").unwrap();
    let mut opened = vec![];
    let list = format!("b  /some/where.ark:{second}\n\na /some/where.ark:2\n");
    let found = read_scp(&list, &mut |path| {
        opened.push(path.to_string());
        Ok(ark.clone())
    });
    assert_eq!(shown(&found.unwrap()), [("b".into(), vec![1, 1], vec![2.0]), ("a".into(), vec![1, 1], vec![1.0])]);
    assert_eq!(opened, ["/some/where.ark"]);
    let mut never = |_: &str| Err("no such file".to_string());
    let e = |text: &str, open: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>| {
        read_scp(text, open).unwrap_err().to_string()
    };
    assert!(e("a", &mut never).contains("line 1: expected a key and a file"));
    assert!(e("a copy-feats x |", &mut never).contains("is a command"));
    assert!(e("a x.ark[0:3]", &mut never).contains("a part"));
    assert!(e("a x.ark:5", &mut never).contains("no such file"));
    assert!(e("a x:999999999999999999999999", &mut never).contains("out of range"));
    assert!(e("a x:99", &mut |_| Ok(ark.clone())).contains("utterance `a`"));
}

#[test]
fn broken_archives_say_what_and_where() {
    assert!(error(b"key").contains("expected the name of an utterance"));
    assert!(
        error(b"key \0BFM \x04\xff\xff\xff\x7f\x04\xff\xff\xff\x7f").contains("utterance `key`: the file ends early")
    );
    assert!(error(b"key \0BFM \x04\x01\0").contains("ends early"));
    assert!(error(b"key \0BXM ").contains("expected a vector or a matrix"));
    assert!(error(b"key \0BCM \0\0\0\0\0\0\0\0\xff\xff\xff\xff\x01\0\0\0").contains("expected a vector or a matrix"));
    assert!(error(b"key  [ 1 2").contains("expected a vector or a matrix"));
    assert!(error(b"key  [\n 1 2\n 3 ]").contains("rows of 2 numbers"));
    assert!(error(b"key  [ 1 x ]").contains("expected a number at byte"));
    assert_eq!(read_ark(b"key \0BSM ").unwrap_err().kind(), carafe_ark::ErrorKind::Unsupported);
    assert!(matches!(read_ark(b"\xff\xfe ").unwrap_err(), ArkError::Expected { .. }));
}

#[test]
fn numbers_of_all_sizes_are_read() {
    let mut s = Scanner::new(b"\0B\x01\xff\x02\xfe\xff\xfc\xff\xff\xff\xff\x08\x01\0\0\0\0\0\0\x80T\x05", 0);
    assert!(s.is_binary() && is_binary(b"\0B"));
    let found = (s.int().unwrap(), s.int().unwrap(), s.int().unwrap(), s.int().unwrap(), s.bool().unwrap());
    assert_eq!(found, (-1, -2, 0xffff_ffff, i64::MIN + 1, true));
    assert!(s.int().unwrap_err().to_string().contains("expected an integer"));
    let mut s = Scanner::new(b"  <Token> -3 1e2 nan T [ 1 2 ] [ 1,2 3,4 ] []", 0);
    assert_eq!((s.token().unwrap(), s.int().unwrap(), s.float().unwrap()), ("<Token>", -3, 100.0));
    assert!(s.float().unwrap().is_nan() && s.bool().unwrap());
    assert_eq!((s.ints().unwrap(), s.pairs().unwrap(), s.ints().unwrap()), (vec![1, 2], vec![1, 2, 3, 4], vec![]));
    assert!(s.token().unwrap_err().to_string().contains("found the end of the file"));
}
