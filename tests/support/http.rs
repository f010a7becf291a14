//! A small HTTP/1.1 client on a bare socket: it sends exactly the bytes it is told to, and reads exactly one
//! response. Blocking, with a deadline on everything.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// No test waits longer than this for anything.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// One response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// In order, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The problem document's `code`; asserts that it is one.
    pub(crate) fn code(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let document = self.json();
        assert_eq!(document["status"], self.status, "{document}");
        document["code"].as_str().expect("a code").to_owned()
    }

    /// The verdict of a 2xx.
    pub(crate) fn verdict(&self) -> String {
        assert!(matches!(self.status, 200 | 202), "{self:?} {}", self.text());
        self.json()["status"].as_str().expect("a verdict").to_owned()
    }
}

/// A request to be.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    pub(crate) framing: Framing,
}

/// How a body's end is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length,
    /// In chunks of at most so many bytes.
    Chunked(usize),
    /// Nothing is said: for tests that write the header themselves.
    Unsaid,
}

impl Request {
    pub(crate) fn new(method: &str, target: &str) -> Self {
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: vec![("host".to_owned(), b"gate.test".to_vec())],
            body: Vec::new(),
            framing: Framing::Length,
        }
    }

    pub(crate) fn post(target: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..Self::new("POST", target) }
    }

    #[must_use]
    pub(crate) fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    #[must_use]
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    #[must_use]
    pub(crate) fn framed(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// The head alone, with its empty line.
    pub(crate) fn head(&self) -> Vec<u8> {
        let mut bytes = format!("{} {} HTTP/1.1\r\n", self.method, self.target).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        }
        match self.framing {
            Framing::Length if !self.body.is_empty() || self.method == "POST" => {
                bytes.extend_from_slice(format!("content-length: {}\r\n", self.body.len()).as_bytes());
            }
            Framing::Chunked(_) => bytes.extend_from_slice(b"transfer-encoding: chunked\r\n"),
            Framing::Length | Framing::Unsaid => {}
        }
        bytes.extend_from_slice(b"\r\n");
        bytes
    }

    /// Head and body as they go over the wire.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head();
        if let Framing::Chunked(size) = self.framing {
            for chunk in self.body.chunks(size) {
                bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
        } else {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

/// One connection.
pub(crate) struct Client {
    socket: TcpStream,
    unread: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect_timeout(&address, DEADLINE)?;
        socket.set_read_timeout(Some(DEADLINE))?;
        socket.set_write_timeout(Some(DEADLINE))?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, unread: Vec::new() })
    }

    /// Sends a request and reads its response.
    pub(crate) fn call(&mut self, request: &Request) -> io::Result<Response> {
        // a server may answer and close before it has read everything: the answer counts
        let sent = self.send(&request.bytes());
        match self.response_to(&request.method) {
            Ok(response) => Ok(response),
            Err(error) => Err(sent.err().unwrap_or(error)),
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes)
    }

    /// Says that nothing more will be sent (FIN).
    pub(crate) fn finish(&self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)
    }

    /// Waits that long for bytes of an answer, then resets the connection.
    pub(crate) fn reset_after(mut self, patience: Duration) -> io::Result<()> {
        self.socket.set_read_timeout(Some(patience))?;
        let _ = self.socket.read(&mut [0; 64]); // an answer, or none in time: both are fine
        reset(self.socket)
    }

    /// Goes away in the middle: the server sees RST and not FIN.
    pub(crate) fn reset(self) -> io::Result<()> {
        reset(self.socket)
    }

    pub(crate) fn response(&mut self) -> io::Result<Response> {
        self.response_to("GET")
    }

    /// Reads one response; `HEAD` has no body whatever its headers say.
    pub(crate) fn response_to(&mut self, method: &str) -> io::Result<Response> {
        let head_end = loop {
            if let Some(at) = find(&self.unread, b"\r\n\r\n") {
                break at;
            }
            self.fill()?;
        };
        let head = String::from_utf8_lossy(&self.unread[..head_end]).into_owned();
        self.unread.drain(..head_end + 4);
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
        let status: u16 = status.ok_or_else(|| io::Error::other(format!("no status line in {head:?}")))?;
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let mut response = Response { status, headers, body: Vec::new() };
        let bodiless = method == "HEAD" || matches!(status, 100..=199 | 204 | 304);
        let length = response.header("content-length").and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
        if !bodiless {
            while self.unread.len() < length {
                self.fill()?;
            }
            response.body = self.unread.drain(..length).collect();
        }
        Ok(response)
    }

    /// Whether the server closes this connection (without another byte).
    pub(crate) fn closed(&mut self) -> bool {
        let mut byte = [0; 1];
        self.unread.is_empty() && matches!(self.socket.read(&mut byte), Ok(0))
            || self.socket.peek(&mut byte).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset)
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        match self.socket.read(&mut buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.unread.extend_from_slice(&buffer[..read]);
                Ok(())
            }
        }
    }
}

/// Closes a socket by RST.
fn reset(socket: TcpStream) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _inside = runtime.enter();
    let socket = tokio::net::TcpStream::from_std(socket)?;
    socket.set_zero_linger()?;
    drop(socket);
    Ok(())
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
