//! Resolves host names: with the system's resolver, or with one of its own in the static binary (feature `static`),
//! because glibc's needs shared objects at run time.

#[cfg(feature = "static")]
mod stub;

use std::io;
use std::net::SocketAddr;

/// Looks up the addresses of a host, which may be an IP address.
pub(crate) async fn lookup(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    #[cfg(feature = "static")]
    let addresses = stub::lookup(host).await?.into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
    #[cfg(not(feature = "static"))]
    let addresses = tokio::net::lookup_host((host, port)).await?.collect();
    Ok(addresses)
}

/// Makes an HTTP client use the same resolver as [`lookup`].
pub(crate) fn configure(client: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    #[cfg(feature = "static")]
    let client = client.dns_resolver(std::sync::Arc::new(stub::StubResolver));
    client
}
