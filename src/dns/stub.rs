//! A resolver that reads `/etc/hosts` and `/etc/resolv.conf` and asks the name servers itself. It has neither NSS nor a
//! cache: like the system's, it reads both files for each lookup.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::system_conf::read_system_conf;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// The resolver of the HTTP client.
pub(super) struct StubResolver;

impl Resolve for StubResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            // The client replaces the port.
            let addresses = lookup(name.as_str()).await?.into_iter().map(|ip| SocketAddr::new(ip, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

/// Looks up the addresses of a host.
pub(super) async fn lookup(host: &str) -> io::Result<Vec<IpAddr>> {
    let (config, mut options) = read_system_conf().unwrap_or_else(|_| without_configuration());
    options.use_hosts_file = ResolveHosts::Always;
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    let resolver = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
        .with_options(options)
        .build()
        .map_err(io::Error::other)?;
    Ok(resolver.lookup_ip(host).await.map_err(io::Error::other)?.iter().collect())
}

/// Without a usable `/etc/resolv.conf` the name server is on this host, as resolv.conf(5) says.
fn without_configuration() -> (ResolverConfig, ResolverOpts) {
    let server = NameServerConfig::udp_and_tcp(IpAddr::V4(Ipv4Addr::LOCALHOST));
    (ResolverConfig::from_parts(None, Vec::new(), vec![server]), ResolverOpts::default())
}
