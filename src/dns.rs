//! Resolves host names: with the system's resolver, or with one of its own in static binaries, because glibc's needs
//! shared objects at run time.

#[cfg(feature = "static")]
mod stub;

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::OnceLock;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::runtime::in_thread;

type Lookup = fn(String, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

/// Chosen by the program, so that it contains only this one.
static LOOKUP: OnceLock<Lookup> = OnceLock::new();

/// Chooses the system's resolver.
pub fn use_system_resolver() {
    LOOKUP.get_or_init(|| {
        |host, port| Box::pin(in_thread(move || Ok((host, port).to_socket_addrs()?.collect())))
    });
}

/// Chooses a resolver that needs no shared objects.
#[cfg(feature = "static")]
pub fn use_own_resolver() {
    LOOKUP.get_or_init(|| {
        |host, port| {
            Box::pin(async move {
                let addresses = stub::lookup(&host).await?;
                Ok(addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect())
            })
        }
    });
}

/// Looks up the addresses of a host, which may be an IP address.
pub(crate) async fn lookup(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let lookup = LOOKUP.get().ok_or_else(|| io::Error::other("no resolver is chosen"))?;
    lookup(host.to_owned(), port).await
}

/// Makes an HTTP client use [`lookup`].
pub(crate) struct Resolver;

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        // The client replaces the port.
        Box::pin(async move { Ok(Box::new(lookup(name.as_str(), 0).await?.into_iter()) as Addrs) })
    }
}
