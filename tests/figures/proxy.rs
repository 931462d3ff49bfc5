//! Counts round trips: a TCP proxy between hook and server that passes bytes on only when their sender has fallen
//! silent, so that everything sent without waiting for the other side counts as one flight.

use std::io::{self, Read, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::scene::Scene;
use crate::system;

/// A sender that is silent for so long waits for an answer.
const SILENCE: Duration = Duration::from_millis(40);

/// Ends a connection on which nothing happens any more.
const STALLED: Duration = Duration::from_secs(20);

/// TCP's own handshake.
const CONNECT: usize = 1;

/// Round trips of a bare upload, from the first packet until the answer is there.
pub(crate) fn round_trips(scene: &Scene) -> Result<usize> {
    let server = scene.server()?.port();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen on loopback")?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let (ended, total) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                if let Ok((client, _)) = listener.accept() {
                    total.fetch_add(connection(&client, server), Ordering::Relaxed);
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        let outcome = system::run(scene.command(scene.upload(port)));
        ended.store(true, Ordering::Relaxed);
        outcome
    })?;
    Ok(total.load(Ordering::Relaxed))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sender {
    Client,
    Server,
}

/// Serves one connection to its end and returns its round trips.
fn connection(client: &TcpStream, port: u16) -> usize {
    let flights = Mutex::new(Vec::new());
    let _ = relay_both(client, port, &flights);
    let flights = flights.into_inner().unwrap_or_default();
    CONNECT + turns(&flights)
}

fn relay_both(client: &TcpStream, port: u16, flights: &Mutex<Vec<Sender>>) -> io::Result<()> {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    client.set_nonblocking(false)?;
    for end in [client, &server] {
        end.set_nodelay(true)?;
    }
    thread::scope(|scope| {
        scope.spawn(|| relay(client, &server, Sender::Client, flights));
        relay(&server, client, Sender::Server, flights);
    });
    Ok(())
}

/// Passes on what one side sends, a flight at a time, until it ends the stream.
fn relay(mut from: &TcpStream, mut to: &TcpStream, sender: Sender, flights: &Mutex<Vec<Sender>>) {
    while let Ok((bytes, ended)) = flight(&mut from) {
        // What a client says together with the end of its stream is a goodbye: nobody waits for an answer to it.
        let goodbye = ended && sender == Sender::Client;
        if !bytes.is_empty()
            && !goodbye
            && let Ok(mut flights) = flights.lock()
        {
            flights.push(sender);
        }
        if to.write_all(&bytes).is_err() || ended {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// Everything that arrives until the sender is silent, and whether the stream has ended.
fn flight(from: &mut &TcpStream) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 * 1024];
    from.set_read_timeout(Some(STALLED))?;
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok((bytes, true)),
            Ok(length) => bytes.extend(chunk.iter().take(length)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) if !bytes.is_empty() => return Ok((bytes, false)),
            Err(error) => return Err(error),
        }
        from.set_read_timeout(Some(SILENCE))?;
    }
}

/// How often it became the client's turn before the server spoke last.
fn turns(flights: &[Sender]) -> usize {
    let answered = flights.iter().rposition(|sender| *sender == Sender::Server).unwrap_or_default();
    let runs = flights.get(..answered).unwrap_or_default().chunk_by(|a, b| a == b);
    runs.filter(|run| run.first() == Some(&Sender::Client)).count()
}
