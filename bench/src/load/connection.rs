//! One keep-alive connection: sends one request at a time from its ring of recent requests, reads one answer.
//!
//! Owns the socket and the last `RECENT` requests, so a repeat is the same bytes again. Promises never to block and
//! to hold at most one answer. A broken connection says so; the caller opens a new one.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// How far back a repeated event may lie.
pub(super) const RECENT: usize = 64;

const ANSWER_MAX: usize = 16 * 1_024;

/// What became of a request.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) verdict: Verdict,
    /// The server closes the connection after this answer.
    pub(super) closes: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Applied,
    Duplicate,
    Stale,
    Other,
}

pub(super) enum Progress {
    Waiting,
    Answered(Answer),
    Broken(String),
}

pub(super) struct Connection {
    stream: TcpStream,
    ring: Vec<u8>,
    request_len: usize,
    /// New requests written so far; the ring holds the last ones.
    written: usize,
    sending: Option<(usize, usize)>,
    answer: Vec<u8>,
    filled: usize,
}

impl Connection {
    pub(super) fn open(target: SocketAddr, request_len: usize) -> std::io::Result<Self> {
        let stream = TcpStream::connect(target)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            ring: vec![0; RECENT * request_len],
            request_len,
            written: 0,
            sending: None,
            answer: vec![0; ANSWER_MAX],
            filled: 0,
        })
    }

    /// Opens the socket anew and forgets what was under way, not what was sent: a repeat stays possible.
    pub(super) fn reopen(&mut self, target: SocketAddr) -> std::io::Result<()> {
        let fresh = Self::open(target, 0)?;
        self.stream = fresh.stream;
        self.sending = None;
        self.filled = 0;
        Ok(())
    }

    pub(super) fn socket(&self) -> &TcpStream {
        &self.stream
    }

    /// Requests that can be repeated.
    pub(super) fn recent(&self) -> usize {
        self.written.min(RECENT)
    }

    /// The slot of the next new request, to be filled by the caller.
    pub(super) fn next_slot(&mut self) -> (usize, &mut [u8]) {
        let slot = self.written % RECENT;
        self.written += 1;
        (slot, &mut self.ring[slot * self.request_len..(slot + 1) * self.request_len])
    }

    /// Sends the request of a slot; what the socket does not take now goes with [`Connection::flush`].
    pub(super) fn send(&mut self, slot: usize) -> Result<bool, String> {
        self.filled = 0;
        self.sending = Some((slot * self.request_len, (slot + 1) * self.request_len));
        self.flush()
    }

    /// True when the whole request is out.
    pub(super) fn flush(&mut self) -> Result<bool, String> {
        while let Some((from, to)) = self.sending {
            match self.stream.write(&self.ring[from..to]) {
                Ok(0) => return Err("the server takes no more bytes".into()),
                Ok(sent) if from + sent == to => self.sending = None,
                Ok(sent) => self.sending = Some((from + sent, to)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(true)
    }

    /// Reads what is there.
    pub(super) fn read(&mut self) -> Progress {
        loop {
            if self.filled == self.answer.len() {
                return Progress::Broken(format!("an answer is longer than {ANSWER_MAX} bytes"));
            }
            match self.stream.read(&mut self.answer[self.filled..]) {
                Ok(0) => return Progress::Broken("the server closed the connection".into()),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Progress::Waiting,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Progress::Broken(error.to_string()),
            }
            match parse(&self.answer[..self.filled]) {
                Ok(Some(answer)) => return Progress::Answered(answer),
                Ok(None) => {}
                Err(reason) => return Progress::Broken(reason.into()),
            }
        }
    }
}

/// The answer when all of it is there. Only what the contenders send: a status line, `content-length`, a body.
fn parse(bytes: &[u8]) -> Result<Option<Answer>, &'static str> {
    let Some(head_len) = find(bytes, b"\r\n\r\n") else { return Ok(None) };
    let head = &bytes[..head_len];
    let status = head
        .get(9..12)
        .filter(|_| head.starts_with(b"HTTP/1.1 "))
        .and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
        .ok_or("an answer without a status line of HTTP/1.1")?;
    let mut body_len = 0;
    let mut closes = false;
    for line in head.split(|byte| *byte == b'\n').skip(1) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            body_len = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).ok_or("a wrong length")?;
        } else if name.eq_ignore_ascii_case(b"connection") {
            closes = value.eq_ignore_ascii_case(b"close");
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            return Err("a chunked answer, which this load generator does not read");
        }
    }
    let body_at = head_len + 4;
    if bytes.len() < body_at + body_len {
        return Ok(None);
    }
    Ok(Some(Answer { status, verdict: verdict(&bytes[body_at..body_at + body_len]), closes }))
}

fn verdict(body: &[u8]) -> Verdict {
    const START: &[u8] = b"\"status\":\"";
    let Some(at) = find(body, START) else { return Verdict::Other };
    match &body[at + START.len()..] {
        rest if rest.starts_with(b"applied\"") => Verdict::Applied,
        rest if rest.starts_with(b"duplicate\"") => Verdict::Duplicate,
        rest if rest.starts_with(b"stale\"") => Verdict::Stale,
        _ => Verdict::Other,
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_when_all_of_it_is_there() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\nConnection: close\r\n\r\n{\"status\":\"applied\"}";
        assert!(parse(&whole[..whole.len() - 1]).is_ok_and(|answer| answer.is_none()));
        let answer = parse(whole).ok().flatten().expect("an answer");
        assert_eq!(answer.status, 200);
        assert!(answer.closes && answer.verdict == Verdict::Applied);
    }
}
