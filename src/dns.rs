//! Resolves host names: with the system's resolver, or with one of its own in the static binary (feature `static`),
//! because glibc's needs shared objects at run time.

#[cfg(feature = "static")]
mod stub;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Looks up the addresses of a host, which may be an IP address.
pub(crate) async fn lookup(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    #[cfg(feature = "static")]
    let addresses = stub::lookup(host).await?.into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
    #[cfg(not(feature = "static"))]
    let addresses = match host.parse() {
        Ok(ip) => vec![SocketAddr::new(ip, port)],
        Err(_) => system_lookup(host.to_owned(), port).await?,
    };
    Ok(addresses)
}

#[cfg(not(feature = "static"))]
async fn system_lookup(host: String, port: u16) -> io::Result<Vec<SocketAddr>> {
    use std::net::ToSocketAddrs as _;
    crate::runtime::in_thread(move || Ok((host, port).to_socket_addrs()?.collect())).await
}

/// Makes an HTTP client use [`lookup`].
pub(crate) fn configure(client: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    client.dns_resolver(Arc::new(Resolver))
}

struct Resolver;

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        // The client replaces the port.
        Box::pin(async move { Ok(Box::new(lookup(name.as_str(), 0).await?.into_iter()) as Addrs) })
    }
}
