//! A DNS server on port 53 of a loopback address, which knows a few names.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::harness::cannot_run;

/// A running server; it ends with the test process.
pub(super) struct NameServer(Arc<Mutex<BTreeSet<String>>>);

impl NameServer {
    /// Starts a server that resolves these names to 127.0.0.1. Others do not exist.
    pub(super) fn start(address: &str, names: &'static [&'static str]) -> Self {
        let socket = UdpSocket::bind((address, 53))
            .unwrap_or_else(|error| cannot_run(&format!("port 53 of {address} is not free: {error}")));
        let asked = Arc::new(Mutex::new(BTreeSet::new()));
        let seen = Arc::clone(&asked);
        thread::spawn(move || {
            let mut query = [0; 512];
            while let Ok((length, client)) = socket.recv_from(&mut query) {
                let (name, response) = answer(&query[..length], names);
                seen.lock().unwrap().insert(name);
                socket.send_to(&response, client).unwrap();
            }
        });
        Self(asked)
    }

    /// Whether somebody has asked for this name.
    pub(super) fn has_asked(&self, name: &str) -> bool {
        self.0.lock().unwrap().contains(name)
    }
}

const HEADER: usize = 12;
/// RFC 1035, section 3.2.2.
const TYPE_A: [u8; 2] = [0, 1];
/// A response without an error, and one that says that the name does not exist; recursion is available.
const FOUND: [u8; 2] = [0x81, 0x80];
const NO_SUCH_NAME: [u8; 2] = [0x81, 0x83];

/// The name that a query asks for, and the response (RFC 1035, section 4.1).
fn answer(query: &[u8], names: &[&str]) -> (String, Vec<u8>) {
    let (mut labels, mut at) = (Vec::new(), HEADER);
    while query[at] != 0 {
        let end = at + 1 + usize::from(query[at]);
        labels.push(String::from_utf8(query[at + 1..end].to_vec()).unwrap());
        at = end;
    }
    let name = labels.join(".").to_lowercase();
    let question = &query[HEADER..at + 5];
    let is_known = names.contains(&name.as_str());
    let has_answer = is_known && question[question.len() - 4..][..2] == TYPE_A;
    let flags = if is_known { FOUND } else { NO_SUCH_NAME };
    let counts = [0, 1, 0, u8::from(has_answer), 0, 0, 0, 0];
    let mut response = [&query[..2], &flags, &counts, question].concat();
    if has_answer {
        // The name of the question, type A, class IN, for a minute, 127.0.0.1.
        response.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
    }
    (name, response)
}
