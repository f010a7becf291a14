//! A server that verifies what `send` sends, and answers as told.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use actix_web::http::Method;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use tidegate::clock::SystemClock;
use tidegate::config::{Config, Environment};
use tidegate::source::{Request, Source};
use tidegate_actors::ports::Clock as _;

/// A running receiver of the source `demo`.
pub(super) struct Receiver {
    pub(super) address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    ids: HashSet<String>,
    /// Bodies in the order they came.
    bodies: Vec<Bytes>,
    /// How many requests to answer 503 first.
    busy: usize,
    refused: usize,
}

impl Receiver {
    /// Starts one that answers 503 to the first `busy` requests.
    pub(super) fn start(busy: usize) -> Self {
        let config = Config::load(None, &Environment::new()).expect("the defaults");
        let demo = config.sources.iter().find(|entry| entry.spec.name == "demo").expect("the demo source");
        let source = Arc::new(Source::compile(&demo.spec, &demo.secrets).expect("the demo source compiles"));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let seen = Arc::new(Mutex::new(Seen { busy, ..Seen::default() }));
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (source, seen) = (Arc::clone(&source), Arc::clone(&shared));
                std::thread::spawn(move || serve(stream, &source, &seen));
            }
        });
        Self { address, seen }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Bodies in the order they came.
    pub(super) fn bodies(&self) -> Vec<Bytes> {
        self.seen.lock().expect("not poisoned").bodies.clone()
    }

    /// How many requests had no right signature.
    pub(super) fn refused(&self) -> usize {
        self.seen.lock().expect("not poisoned").refused
    }
}

fn serve(stream: TcpStream, source: &Source, seen: &Mutex<Seen>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut writer = stream;
    while let Some((target, headers, body)) = read(&mut reader) {
        let request = Request {
            method: &Method::POST,
            target: &target,
            path_tenant: None,
            headers: &headers,
            body: &body,
            now_ms: SystemClock::new().now_ms(),
        };
        let verified = source.verify(&request).is_ok();
        let id = headers.get("webhook-id").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
        let (status, extra, answer) = answer(&mut seen.lock().expect("not poisoned"), verified, &id, body);
        let length = answer.len();
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{extra}content-length: {length}\r\n\r\n");
        if writer.write_all(format!("{head}{answer}").as_bytes()).is_err() {
            return;
        }
    }
}

fn answer(seen: &mut Seen, verified: bool, id: &str, body: Bytes) -> (&'static str, &'static str, String) {
    if !verified {
        seen.refused += 1;
        return ("401 Unauthorized", "", "{\"status\": 401, \"code\": \"unauthorized\"}".to_owned());
    }
    if seen.busy > 0 {
        seen.busy -= 1;
        return ("503 Busy", "retry-after: 0\r\n", "{\"status\": 503, \"code\": \"overloaded\"}".to_owned());
    }
    seen.bodies.push(body);
    let word = if seen.ids.insert(id.to_owned()) { "applied" } else { "duplicate" };
    ("200 OK", "", format!("{{\"status\": \"{word}\", \"id\": \"{id}\"}}"))
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<(String, HeaderMap, Bytes)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let target = line.split(' ').nth(1)?.to_owned();
    let mut headers = HeaderMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.append(HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_str(value).ok()?);
    }
    let length = headers.get("content-length")?.to_str().ok()?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((target, headers, body.into()))
}
