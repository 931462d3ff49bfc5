//! A TCP proxy that delays what passes, as a network with a round trip of 50 ms does. It does not limit the rate.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// Time from one end to the other.
const ONE_WAY: Duration = Duration::from_millis(25);

/// Starts a proxy for a port on loopback and returns its own port. It runs until the program ends.
pub(crate) fn start(server: u16) -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen on loopback")?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || relay_both(&client, server));
        }
    });
    Ok(port)
}

fn relay_both(client: &TcpStream, port: u16) -> io::Result<()> {
    let accepted = now();
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    for end in [client, &server] {
        end.set_nodelay(true)?;
    }
    // The kernel has completed the handshake at once; it takes a round trip before the client can send.
    let connected = accepted + 2 * ONE_WAY;
    thread::scope(|scope| {
        scope.spawn(|| relay(client, &server, connected));
        relay(&server, client, connected);
    });
    Ok(())
}

/// Forwards what one side sends until it closes its stream. Nothing is sent before an instant.
fn relay(mut from: &TcpStream, to: &TcpStream, not_before: Instant) {
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || write_delayed(to, &receiver));
        let mut chunk = vec![0; 64 * 1024];
        loop {
            match from.read(&mut chunk) {
                Ok(length) if length > 0 => {
                    let bytes = chunk.get(..length).unwrap_or_default().to_vec();
                    let _ = sender.send((now().max(not_before) + ONE_WAY, bytes));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        drop(sender);
    });
}

fn write_delayed(mut to: &TcpStream, chunks: &Receiver<(Instant, Vec<u8>)>) {
    for (due, bytes) in chunks {
        thread::sleep(due.saturating_duration_since(now()));
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

#[expect(clippy::disallowed_methods, reason = "delaying is the purpose")]
fn now() -> Instant {
    Instant::now()
}
