//! A DNS server on port 53 of a loopback address, which knows a few names.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::harness::cannot_run;

/// A running server; it ends with the test process.
pub(super) struct NameServer(Arc<Mutex<BTreeSet<String>>>);

/// How a server answers.
#[derive(Clone, Copy)]
pub(super) enum Answers {
    /// It resolves these names to 127.0.0.1. Others do not exist.
    Names(&'static [&'static str]),
    /// It resolves these names, but its answers are too long for UDP.
    OverTcp(&'static [&'static str]),
    /// It fails (`SERVFAIL`).
    Failure,
    /// It does not answer.
    Nothing,
}

impl NameServer {
    pub(super) fn start(address: &str, answers: Answers) -> Self {
        let taken = |error| -> ! { cannot_run(&format!("port 53 of {address} is not free: {error}")) };
        let socket = UdpSocket::bind((address, 53)).unwrap_or_else(|error| taken(error));
        let asked = Arc::new(Mutex::new(BTreeSet::new()));
        if let Answers::OverTcp(names) = answers {
            let listener = TcpListener::bind((address, 53)).unwrap_or_else(|error| taken(error));
            thread::spawn(move || serve_tcp(&listener, names));
        }
        let seen = Arc::clone(&asked);
        thread::spawn(move || {
            let mut query = [0; 512];
            while let Ok((length, client)) = socket.recv_from(&mut query) {
                let (name, question) = question(&query[..length]);
                let id = &query[..2];
                let response = match answers {
                    Answers::Names(names) => Some(answer(id, &name, question, names)),
                    Answers::OverTcp(_) => {
                        Some([id, &TRUNCATED, &[0, 1, 0, 0, 0, 0, 0, 0], question].concat())
                    }
                    Answers::Failure => Some([id, &FAILURE, &[0, 1, 0, 0, 0, 0, 0, 0], question].concat()),
                    Answers::Nothing => None,
                };
                seen.lock().unwrap().insert(name);
                if let Some(response) = response {
                    socket.send_to(&response, client).unwrap();
                }
            }
        });
        Self(asked)
    }

    /// Whether somebody has asked for this name.
    pub(super) fn has_asked(&self, name: &str) -> bool {
        self.0.lock().unwrap().contains(name)
    }
}

/// Answers one query on each connection. A length precedes each message (RFC 1035, section 4.2.2).
fn serve_tcp(listener: &TcpListener, names: &[&str]) {
    for connection in listener.incoming() {
        let mut connection = connection.unwrap();
        let mut length = [0; 2];
        connection.read_exact(&mut length).unwrap();
        let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
        connection.read_exact(&mut query).unwrap();
        let (name, question) = question(&query);
        let response = answer(&query[..2], &name, question, names);
        let length = u16::try_from(response.len()).unwrap().to_be_bytes();
        connection.write_all(&[&length, response.as_slice()].concat()).unwrap();
    }
}

const HEADER: usize = 12;
/// RFC 1035, section 3.2.2.
const TYPE_A: [u8; 2] = [0, 1];
// Flags of responses: without an error, truncated, failed, and for a name that does not exist; recursion is available.
const FOUND: [u8; 2] = [0x81, 0x80];
const TRUNCATED: [u8; 2] = [0x83, 0x80];
const FAILURE: [u8; 2] = [0x81, 0x82];
const NO_SUCH_NAME: [u8; 2] = [0x81, 0x83];

/// The name that a query asks for, and its question (RFC 1035, section 4.1).
fn question(query: &[u8]) -> (String, &[u8]) {
    let (mut labels, mut at) = (Vec::new(), HEADER);
    while query[at] != 0 {
        let end = at + 1 + usize::from(query[at]);
        labels.push(String::from_utf8(query[at + 1..end].to_vec()).unwrap());
        at = end;
    }
    (labels.join(".").to_lowercase(), &query[HEADER..at + 5])
}

/// The response to a query with this identifier.
fn answer(id: &[u8], name: &str, question: &[u8], names: &[&str]) -> Vec<u8> {
    let is_known = names.contains(&name);
    let has_answer = is_known && question[question.len() - 4..][..2] == TYPE_A;
    let flags = if is_known { FOUND } else { NO_SUCH_NAME };
    let counts = [0, 1, 0, u8::from(has_answer), 0, 0, 0, 0];
    let mut response = [id, &flags, &counts, question].concat();
    if has_answer {
        // The name of the question, type A, class IN, for a minute, 127.0.0.1.
        response.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
    }
    response
}
