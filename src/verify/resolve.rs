//! Resolves the addresses of an edge, and the server name to send to it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::time::timeout;

use crate::dns;
use crate::names::Domain;
use crate::text::sanitize;

const HTTPS_PORT: u16 = 443;

/// Resolves the CNAME target of a site. The error says why its addresses are unknown.
pub(super) async fn resolve_cname(cname: Option<&str>, limit: Duration) -> Result<Vec<SocketAddr>, String> {
    let cname = cname.ok_or("the service lists no CNAME target for it")?;
    let host: Domain =
        cname.parse().map_err(|_| format!("its CNAME target `{}` is not a host name", sanitize(cname)))?;
    resolve(host.host(), HTTPS_PORT, limit).await
}

/// Resolves `HOST:PORT`; an IPv6 address is in brackets.
pub(super) async fn resolve_address(address: &str, limit: Duration) -> Result<Vec<SocketAddr>, String> {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    resolve(host.trim_matches(['[', ']']), port.parse().unwrap_or(HTTPS_PORT), limit).await
}

async fn resolve(host: &str, port: u16, limit: Duration) -> Result<Vec<SocketAddr>, String> {
    let shown = sanitize(host);
    let found = timeout(limit, dns::lookup(host, port))
        .await
        .map_err(|_| format!("the DNS lookup of {shown} timed out"))?;
    let addresses = found.map_err(|error| match error.kind() {
        // No thread for the lookup.
        io::ErrorKind::WouldBlock => format!("{shown} cannot be looked up: {error}"),
        _ => format!("{shown} does not resolve"),
    })?;
    if addresses.is_empty() { Err(format!("{shown} has no address")) } else { Ok(addresses) }
}

/// The server name (SNI) for a site; for a wildcard site, a name that no other site is likely to have. `None` for an IP
/// address, which is not sent as a server name (RFC 6066, section 3).
pub(super) fn server_name(domain: &Domain) -> Option<ServerName<'static>> {
    let host = domain.host();
    let name = host.strip_prefix("*.").map_or_else(|| host.to_owned(), |parent| format!("edgecert.{parent}"));
    ServerName::try_from(name).ok().filter(|name| matches!(name, ServerName::DnsName(_)))
}
