//! One page over HTTP, for browsers on this machine: only loopback is listened on, only GET is answered, and a request that is long, slow
//! or meant for another host is refused.

use super::print;
use carafe::{Error, Result};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Longest head of a request.
const MOST_BYTES: usize = 8 << 10;
/// Time for a request and its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Serves until the program is ended; 0 takes a free port.
pub(super) fn serve(port: u16, page: &str) -> Result<()> {
    let failed = |e: std::io::Error| Error::io(format!("cannot serve on 127.0.0.1:{port}"), &e);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    print(&format!("http://127.0.0.1:{port}/ shows the model; Ctrl-C ends\n"))?;
    // A browser that goes away is no reason to stop.
    for stream in listener.incoming().flatten() {
        let _ = answer(stream, port, page);
    }
    Ok(())
}

fn answer(mut stream: TcpStream, port: u16, page: &str) -> std::io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let (status, body) = match head(&mut stream)? {
        None => ("400 Bad Request", "the request is too long or too slow\n"),
        Some(head) => reply(&head, port, page),
    };
    let kind = if status.starts_with("200") { "text/html" } else { "text/plain" };
    let allow = if status.starts_with("405") { "Allow: GET\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\nX-Content-Type-Options: nosniff\r\n\
         Cache-Control: no-store\r\n{allow}Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

// The head of a request up to its empty line; `None` when it does not come in time or does not end.
fn head(stream: &mut TcpStream) -> std::io::Result<Option<String>> {
    let begin = Instant::now();
    let mut bytes = vec![];
    let mut part = [0; 1024];
    while !bytes.windows(4).any(|w| w == b"\r\n\r\n") {
        let left = PATIENCE.saturating_sub(begin.elapsed());
        if left.is_zero() || bytes.len() > MOST_BYTES {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return Ok(None),
            Ok(n) => bytes.extend(&part[..n]),
        }
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn reply<'p>(head: &str, port: u16, page: &'p str) -> (&'static str, &'p str) {
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let host = lines
        .find_map(|l| l.split_once(':').filter(|(k, _)| k.eq_ignore_ascii_case("host")))
        .map_or("", |(_, v)| v.trim());
    // A page of another site may point its own name at this machine.
    let is_here = [format!("127.0.0.1:{port}"), format!("localhost:{port}")].iter().any(|h| h == host);
    match (method, path.split('?').next().unwrap_or(path)) {
        _ if !is_here => ("403 Forbidden", "this page is for browsers on this machine\n"),
        ("GET", "/") => ("200 OK", page),
        ("GET", _) => ("404 Not Found", "there is one page: /\n"),
        _ => ("405 Method Not Allowed", "only GET is answered\n"),
    }
}
