//! Clients that are slow, silent or many: others are answered meanwhile, and nothing of them is left behind.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::faults::{DECIDE, logged};
use crate::interrupt::wait_until;
use crate::serve::{Service, deployed, deployed_with, run_by};
use crate::workshop;

/// Connections that are open at once and send nothing.
const IDLE: usize = 5_000;

/// Descriptors that the log may open or close meanwhile: a journal, and connections to an archive.
const DESCRIPTORS_OF_LOG: usize = 5;

/// Clients of each kind.
const CLIENTS: usize = 20;

/// Descriptors of the service's process.
fn descriptors(service: &Service) -> usize {
    fs::read_dir(format!("/proc/{}/fd", service.child.id())).unwrap().count()
}

/// The descriptors of a service when nobody but the one who asks is connected.
fn held(service: &Service) -> usize {
    // The descriptors that reading the log opens once stay open.
    assert_eq!(service.answer("/v1/deployments/d/decisions?limit=1", None).status, 200);
    let mut last = 0;
    // Connections that were just closed may still be there.
    wait_until(|| {
        std::thread::sleep(Duration::from_millis(100));
        let now = descriptors(service);
        std::mem::replace(&mut last, now) == now
    });
    last
}

#[track_caller]
fn assert_all_released(service: &Service, before: usize) {
    let mut now = 0;
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(200));
        now = descriptors(service);
        if now <= before + DESCRIPTORS_OF_LOG {
            return;
        }
    }
    panic!("{now} descriptors are held, {before} before");
}

fn connect(service: &Service) -> TcpStream {
    let stream = TcpStream::connect(service.url.strip_prefix("http://").unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

fn decide(service: &Service) {
    let answer = service.answer(DECIDE, Some(&json!({"probs": [0.5, 0.3, 0.2]})));
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Whether the service is a process whose descriptors can be counted.
fn can_count() -> bool {
    let can = fs::read_dir("/proc/self/fd").is_ok();
    if !can {
        pointsman_testing::announce("no /proc: descriptors that are left open are not tested");
    }
    can
}

#[test]
fn thousands_of_idle_connections_stop_nobody_and_leave_nothing_behind() {
    let enough = (IDLE + 1_000) as u64;
    if !can_count() || rlimit::increase_nofile_limit(enough).unwrap_or(0) < enough {
        return pointsman_testing::announce("too few open files are allowed for thousands of connections");
    }
    let folder = workshop();
    // The usual limit, which the service raises.
    let serve = run_by("sh", &["-c", "ulimit -Sn 1024; exec \"$@\"", "sh"]);
    // Long enough for all connections to be made on a busy machine before the first is ended.
    fs::write(folder.path().join("p.toml"), "[limits]\ntime = \"10m\"\n").unwrap();
    let service = deployed_with(serve, folder.path(), &["--config", "p.toml"]);
    let limits = fs::read_to_string(format!("/proc/{}/limits", service.child.id())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let [soft, hard] = [3, 4].map(|place| line.split_whitespace().nth(place).unwrap());
    assert_eq!(soft, hard, "the limit of open files was not raised");
    let before = held(&service);
    let mut idle: Vec<TcpStream> = Vec::new();
    while idle.len() < IDLE {
        // Not more at once than wait to be accepted, or the system makes clients wait for a second.
        idle.extend((0..500).map(|_| connect(&service)));
        wait_until(|| descriptors(&service) >= before + idle.len());
    }
    for _ in 0..50 {
        decide(&service);
    }
    assert!(descriptors(&service) >= before + IDLE, "the idle connections were closed too early for this test");
    drop(idle);
    assert_all_released(&service, before);
}

#[test]
fn a_service_without_free_descriptors_goes_on_when_there_are_some() {
    if !can_count() {
        return;
    }
    let folder = workshop();
    let serve = run_by("sh", &["-c", "ulimit -n 100; exec \"$@\"", "sh"]);
    let service = deployed_with(serve, folder.path(), &[]);
    let before = held(&service);
    let idle: Vec<TcpStream> = (0..150).map(|_| connect(&service)).collect();
    wait_until(|| descriptors(&service) >= 100);
    drop(idle);
    assert_all_released(&service, before);
    decide(&service);
}

/// The answer on a connection until its end; a reset is an end, too.
fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let (mut answer, mut part) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match stream.read(&mut part) {
            Ok(0) => return answer,
            Ok(read) => answer.extend(&part[..read]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return answer,
            Err(error) => panic!("the connection was not ended: {error}"),
        }
    }
}

/// Requests that are none: each connection is ended, with a refusal if there is somebody to tell.
#[test]
fn connections_that_speak_no_http_are_ended_and_others_are_answered() {
    let folder = workshop();
    fs::write(folder.path().join("p.toml"), "[limits]\ntime = \"3s\"\n").unwrap();
    let service = deployed(folder.path(), &["--config", "p.toml"]);
    let start = format!("POST {DECIDE} HTTP/1.1\r\nhost: localhost\r\n");
    let cases: [(&str, Vec<u8>); 12] = [
        ("nothing but line ends", b"\r\n\r\n\r\n\r\nx\r\n\r\n".to_vec()),
        ("NUL characters", vec![0; 4096]),
        ("TLS", [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], &[7; 512]].concat()),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec()),
        ("an address without end", [b"GET /", &vec![b'a'; 1 << 20][..], b" HTTP/1.1\r\n\r\n"].concat()),
        ("a header without end", [start.as_bytes(), b"x: ", &vec![b'a'; 1 << 20][..], b"\r\n\r\n"].concat()),
        ("headers without end", format!("{start}{}\r\n", "x: y\r\n".repeat(100_000)).into_bytes()),
        ("two lengths", format!("{start}content-length: 2\r\ncontent-length: 3\r\n\r\n{{}} ").into_bytes()),
        ("a negative length", format!("{start}content-length: -1\r\n\r\n").into_bytes()),
        ("a length without end", format!("{start}content-length: 99999999999999999999\r\n\r\n").into_bytes()),
        ("a length beyond the limit", format!("{start}content-length: 99999999999\r\n\r\n{{").into_bytes()),
        ("a chunk of a wrong size", format!("{start}transfer-encoding: chunked\r\n\r\nzz\r\n{{}}").into_bytes()),
    ];
    for (what, bytes) in cases {
        let mut stream = connect(&service);
        // The service need not read everything before it refuses.
        let _ = stream.write_all(&bytes);
        let answer = String::from_utf8_lossy(&read_to_end(&mut stream)).into_owned();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{what}: {answer}");
        decide(&service);
    }
    assert_eq!(logged(&service).len(), 12, "a refused request is in the log");
}

/// Sends a text, then a byte now and then until the service ends the connections. Gives the answers.
fn trickle(service: &Service, head: &str, byte: &[u8]) -> Vec<String> {
    let mut streams: Vec<TcpStream> = (0..CLIENTS).map(|_| connect(service)).collect();
    for stream in &mut streams {
        stream.write_all(head.as_bytes()).unwrap();
    }
    let mut open: Vec<usize> = (0..CLIENTS).collect();
    let mut rounds = 0;
    while !open.is_empty() {
        assert!(rounds < 200, "{} of {CLIENTS} connections were not ended", open.len());
        rounds += 1;
        std::thread::sleep(Duration::from_millis(300));
        // An empty byte is silence.
        open.retain(|&place| {
            let stream = &mut streams[place];
            stream.set_nonblocking(true).unwrap();
            let is_ended = stream.write_all(byte).is_err() || stream.peek(&mut [0]).is_ok();
            stream.set_nonblocking(false).unwrap();
            !is_ended
        });
    }
    streams.iter_mut().map(|stream| String::from_utf8(read_to_end(stream)).unwrap()).collect()
}

fn head(length: usize) -> String {
    format!(
        "POST {DECIDE} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    )
}

const BODY: &str = r#"{"probs": [0.5, 0.3, 0.2]}"#;

/// Heads that are never complete: the connection is ended, without an answer or with one that says why.
fn slow_heads(service: &Service) {
    for answer in trickle(service, &format!("POST {DECIDE} HTTP/1.1\r\nx-slow: "), b"a") {
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    }
}

/// Bodies that are never complete, a byte at a time, or not at all from some point on.
fn slow_bodies(service: &Service, byte: &[u8]) {
    for answer in trickle(service, &(head(1_000) + &BODY[..9]), byte) {
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
        assert!(answer.contains("urn:pointsman:timeout") && answer.contains("2 s"), "{answer}");
    }
}

/// Clients that are answered once and then silent, as if their machine had gone.
fn silent_after_an_answer(service: &Service) {
    for answer in trickle(service, &(head(BODY.len()) + BODY), b"") {
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

/// Clients that end their side at once after the request: they are answered or dropped, and the others do not notice.
fn half_closed(service: &Service) {
    for _ in 0..CLIENTS {
        let mut stream = connect(service);
        stream.write_all((head(BODY.len()) + BODY).as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let answer = String::from_utf8(read_to_end(&mut stream)).unwrap();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

/// Clients that leave in the middle of a request or before they read the answer.
fn gone(service: &Service) {
    for client in 0..CLIENTS {
        let mut stream = connect(service);
        let request = head(BODY.len()) + BODY;
        stream.write_all(&request.as_bytes()[..request.len() - 3 * (client % 2)]).unwrap();
    }
}

/// Clients that ask for much and read nothing: the answer is broken off.
fn deaf(service: &Service) {
    let ask = |accept: &str| {
        let mut stream = connect(service);
        let head = "GET /v1/deployments/d/decisions HTTP/1.1\r\nhost: localhost\r\n";
        stream.write_all(format!("{head}accept: {accept}\r\n\r\n").as_bytes()).unwrap();
        stream
    };
    let formats = ["application/json", "application/x-ndjson", "text/csv"];
    let streams: Vec<(&str, TcpStream)> =
        formats.iter().flat_map(|format| [(*format, ask(format)), (*format, ask(format))]).collect();
    // Longer than the limit of a write; then everything that was sent is there, and it is not the whole.
    std::thread::sleep(Duration::from_secs(6));
    for (format, mut stream) in streams {
        let read = read_to_end(&mut stream).len();
        assert!(read < MEGABYTES_LOGGED << 20, "{format}: {read} bytes");
    }
}

/// The inputs in the log: more than the buffers of a connection hold.
const MEGABYTES_LOGGED: usize = 30;

#[test]
fn slow_silent_and_deaf_clients_are_cut_off_while_others_are_answered() {
    if !can_count() {
        return;
    }
    let folder = workshop();
    let path = folder.path();
    fs::write(path.join("p.toml"), "[limits]\ntime = \"2s\"\n").unwrap();
    let service = deployed(path, &["--config", "p.toml"]);
    for _ in 0..MEGABYTES_LOGGED {
        let body = json!({"probs": [0.5, 0.3, 0.2], "input": "x".repeat(1 << 20)});
        assert_eq!(service.answer(DECIDE, Some(&body)).status, 200);
    }
    let before = held(&service);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ordinary = scope.spawn(|| {
            let mut answered = 0;
            while !is_done.load(Ordering::Relaxed) {
                decide(&service);
                answered += 1;
                std::thread::sleep(Duration::from_millis(20));
            }
            answered
        });
        let clients = [
            scope.spawn(|| slow_heads(&service)),
            scope.spawn(|| slow_bodies(&service, b" ")),
            scope.spawn(|| slow_bodies(&service, b"")),
            scope.spawn(|| silent_after_an_answer(&service)),
            scope.spawn(|| half_closed(&service)),
            scope.spawn(|| gone(&service)),
            scope.spawn(|| deaf(&service)),
        ];
        let outcomes = clients.map(|client| client.join());
        is_done.store(true, Ordering::Relaxed);
        let answered = ordinary.join().unwrap();
        outcomes.into_iter().for_each(|outcome| outcome.unwrap());
        assert!(answered > 50, "only {answered} ordinary requests were answered meanwhile");
    });
    assert_all_released(&service, before);
}
