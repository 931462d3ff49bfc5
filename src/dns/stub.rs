//! A resolver that reads `/etc/hosts` and `/etc/resolv.conf` and asks the name servers itself, as resolv.conf(5)
//! describes. It has neither NSS nor a cache: like the system's, it reads both files for each lookup. Name servers with
//! a scope (`fe80::1%eth0`) are not supported.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use hickory_resolver::config::{LookupIpStrategy, ResolveHosts, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{IntoName as _, Name as DnsName, RecordType};
use hickory_resolver::system_conf::parse_resolv_conf;
use hickory_resolver::{Hosts, TokioResolver};

const HOSTS: &str = "/etc/hosts";
const RESOLV_CONF: &str = "/etc/resolv.conf";

// The limits of resolv.conf(5).
const MAX_SERVERS: usize = 3;
const MAX_ATTEMPTS: usize = 5;
const MAX_TIMEOUT: Duration = Duration::from_secs(30);
const MIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Looks up the addresses of a host.
pub(super) async fn lookup(host: &str) -> io::Result<Vec<IpAddr>> {
    let name = host.into_name().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let listed = listed_addresses(&name)?;
    if !listed.is_empty() {
        return Ok(listed);
    }
    let servers = NameServers::configured()?;
    let mut failure = None;
    for candidate in servers.candidates(&name) {
        match servers.ask(&candidate).await {
            Ok(addresses) if !addresses.is_empty() => return Ok(addresses),
            Ok(_) => {}
            // A search domain that its server cannot answer for must not hide the others.
            Err(error @ NetError::Dns(DnsError::ResponseCode(_))) => failure = Some(error),
            Err(error) => return Err(servers.failure(&error)),
        }
    }
    Err(failure.map_or_else(
        || io::Error::new(io::ErrorKind::NotFound, "no address is known for this name"),
        |error| servers.failure(&error),
    ))
}

/// What the hosts file lists for a name. A file that does not exist lists nothing.
fn listed_addresses(name: &DnsName) -> io::Result<Vec<IpAddr>> {
    let Some(text) = read(HOSTS)? else { return Ok(Vec::new()) };
    let mut hosts = Hosts::default();
    hosts.read_hosts_conf(String::from_utf8_lossy(&text).as_bytes())?;
    let listed = [RecordType::A, RecordType::AAAA]
        .into_iter()
        .filter_map(|family| hosts.lookup_static_host(&Query::query(name.to_lowercase(), family)));
    Ok(listed
        .flat_map(|lookup| lookup.answers().iter().filter_map(|it| it.data.ip_addr()).collect::<Vec<_>>())
        .collect())
}

/// The name servers and options of `/etc/resolv.conf`.
struct NameServers {
    /// One for each server, because one for all of them gives them `timeout` together.
    resolvers: Vec<(IpAddr, TokioResolver)>,
    search: Vec<DnsName>,
    dots: usize,
    attempts: usize,
}

impl NameServers {
    fn configured() -> io::Result<Self> {
        let mut text = read(RESOLV_CONF)?.unwrap_or_default();
        // See resolv.conf(5).
        if !text.split(|byte| *byte == b'\n').any(|line| line.trim_ascii_start().starts_with(b"nameserver")) {
            text.extend(b"\nnameserver 127.0.0.1\n");
        }
        let (config, mut options) = parse_resolv_conf(&text).map_err(|error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("cannot parse {RESOLV_CONF}: {error}"))
        })?;
        let attempts = options.attempts.clamp(1, MAX_ATTEMPTS);
        options.timeout = options.timeout.clamp(MIN_TIMEOUT, MAX_TIMEOUT);
        options.attempts = 0;
        options.use_hosts_file = ResolveHosts::Never;
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.edns0 = true;
        let resolvers = config.name_servers().iter().take(MAX_SERVERS).map(|server| {
            let alone = ResolverConfig::from_parts(None, Vec::new(), vec![server.clone()]);
            let builder = TokioResolver::builder_with_config(alone, TokioRuntimeProvider::default());
            let resolver = builder.with_options(options.clone()).build().map_err(io::Error::other)?;
            Ok((server.ip, resolver))
        });
        Ok(Self {
            resolvers: resolvers.collect::<io::Result<_>>()?,
            search: config.search().to_vec(),
            dots: options.ndots,
            attempts,
        })
    }

    /// The names to ask for, in order: with `ndots` dots, the name itself comes before the search domains.
    fn candidates(&self, name: &DnsName) -> Vec<DnsName> {
        let mut absolute = name.clone();
        absolute.set_fqdn(true);
        if name.is_fqdn() {
            return vec![absolute];
        }
        // A name that becomes too long cannot exist.
        let mut names: Vec<_> =
            self.search.iter().filter_map(|domain| name.clone().append_domain(domain).ok()).collect();
        let dots = usize::from(name.num_labels()).saturating_sub(1);
        let at = if dots >= self.dots { 0 } else { names.len() };
        names.insert(at, absolute);
        names
    }

    /// The addresses of an absolute name, none if it does not exist: the answer of the first server that has one.
    async fn ask(&self, name: &DnsName) -> Result<Vec<IpAddr>, NetError> {
        let mut failure = NetError::NoConnections;
        for _ in 0..self.attempts {
            for (_, resolver) in &self.resolvers {
                match resolver.lookup_ip(name.clone()).await {
                    Ok(found) => return Ok(found.iter().collect()),
                    Err(error) if error.is_no_records_found() => return Ok(Vec::new()),
                    Err(error) => failure = error,
                }
            }
        }
        Err(failure)
    }

    fn failure(&self, error: &NetError) -> io::Error {
        let servers: Vec<_> = self.resolvers.iter().map(|(ip, _)| ip.to_string()).collect();
        io::Error::other(format!(
            "the name servers in {RESOLV_CONF} ({}) failed: {error}",
            servers.join(", ")
        ))
    }
}

/// Reads a file; `None` if it does not exist.
fn read(path: &str) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io::Error::new(error.kind(), format!("cannot read {path}: {error}"))),
    }
}
