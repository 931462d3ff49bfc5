//! Counts round trips with a TCP proxy between hook and server. It forwards bytes only once their sender is idle, so
//! that everything sent without waiting for the other side counts as one flight.

use std::io::{self, Read, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::fixture::Fixture;
use crate::system;

/// A sender that is idle for this long is waiting for a response.
const IDLE_TIMEOUT: Duration = Duration::from_millis(40);

/// Closes a stalled connection.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// Round trips of the TCP handshake.
const TCP_HANDSHAKE: usize = 1;

/// Round trips of a bare upload, from the first packet to the response.
pub(crate) fn round_trips(fixture: &Fixture) -> Result<usize> {
    let server = fixture.server()?.port();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen on loopback")?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let (finished, total) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !finished.load(Ordering::Relaxed) {
                if let Ok((client, _)) = listener.accept() {
                    total.fetch_add(proxy_connection(&client, server), Ordering::Relaxed);
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        let result = system::run(fixture.command(fixture.upload_call(port)));
        finished.store(true, Ordering::Relaxed);
        result
    })?;
    Ok(total.load(Ordering::Relaxed))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sender {
    Client,
    Server,
}

/// Proxies one connection until it is closed and returns its round trips.
fn proxy_connection(client: &TcpStream, port: u16) -> usize {
    let flights = Mutex::new(Vec::new());
    let _ = relay_both(client, port, &flights);
    let flights = flights.into_inner().unwrap_or_default();
    TCP_HANDSHAKE + client_flights(&flights)
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

/// Forwards what one side sends, a flight at a time, until it closes its stream.
fn relay(mut from: &TcpStream, mut to: &TcpStream, sender: Sender, flights: &Mutex<Vec<Sender>>) {
    while let Ok((bytes, ended)) = read_flight(&mut from) {
        // A client's last bytes are a TLS close_notify, to which it expects no response.
        let is_close_notify = ended && sender == Sender::Client;
        if !bytes.is_empty()
            && !is_close_notify
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

/// Reads until the sender is idle; returns the bytes and whether the stream has ended.
fn read_flight(from: &mut &TcpStream) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 * 1024];
    from.set_read_timeout(Some(READ_TIMEOUT))?;
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok((bytes, true)),
            Ok(length) => bytes.extend(chunk.iter().take(length)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) if !bytes.is_empty() => return Ok((bytes, false)),
            Err(error) => return Err(error),
        }
        from.set_read_timeout(Some(IDLE_TIMEOUT))?;
    }
}

/// Number of client flights before the server's last flight.
fn client_flights(flights: &[Sender]) -> usize {
    let last_response = flights.iter().rposition(|sender| *sender == Sender::Server).unwrap_or_default();
    let runs = flights.get(..last_response).unwrap_or_default().chunk_by(|a, b| a == b);
    runs.filter(|run| run.first() == Some(&Sender::Client)).count()
}
