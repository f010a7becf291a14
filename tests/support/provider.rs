//! A provider's API: what it knows of each thing, how often it was asked, and whether it is well.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A provider on a port of its own; clones are the same one.
#[derive(Clone)]
pub(crate) struct Provider {
    pub(crate) address: SocketAddr,
    knows: Arc<Mutex<Knowledge>>,
}

#[derive(Default)]
struct Knowledge {
    /// The answer by path; `""` answers for every path.
    answers: BTreeMap<String, String>,
    ill: bool,
    asked: Vec<String>,
}

impl Provider {
    /// One that gives this answer, whatever it is asked.
    pub(crate) fn start(answer: &str) -> Self {
        Self::knowing([(String::new(), answer.to_owned())].into())
    }

    /// One that knows these answers by path, and of nothing else.
    pub(crate) fn knowing(answers: BTreeMap<String, String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let knows = Arc::new(Mutex::new(Knowledge { answers, ..Knowledge::default() }));
        let provider = Self { address: listener.local_addr().expect("an address"), knows };
        let serving = provider.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serving.serve(stream.expect("a connection"));
            }
        });
        provider
    }

    fn serve(&self, mut stream: TcpStream) {
        let (mut head, mut byte) = (Vec::new(), [0; 1]);
        while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let answer = {
            let mut knows = self.lock();
            let known = knows.answers.get(&path).or_else(|| knows.answers.get("")).cloned();
            let status = match (knows.ill, &known) {
                (true, _) => "500 Internal Server Error",
                (false, None) => "404 Not Found",
                (false, Some(_)) => "200 OK",
            };
            knows.asked.push(path);
            let body = known.unwrap_or_default();
            format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        };
        // a gate that is gone by then has had enough
        let _ = stream.write_all(answer.as_bytes());
    }

    fn lock(&self) -> MutexGuard<'_, Knowledge> {
        self.knows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on it gives this answer.
    pub(crate) fn says(&self, answer: &str) {
        self.lock().answers = [(String::new(), answer.to_owned())].into();
    }

    /// Whether it answers 500.
    pub(crate) fn is_ill(&self, ill: bool) {
        self.lock().ill = ill;
    }

    /// The paths it was asked for.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.lock().asked.clone()
    }
}
