//! The proxy for requests to the service and to `heartbeat_url`, from the setting `proxy` or the variables that curl
//! reads. They may hold a password, so an error names the variable only.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use reqwest::Url;

use super::SettingsError;
use super::address::has_credentials;
use super::error::Result;
use crate::env::Env;
use crate::names::Domain;
use crate::text::sanitize;

/// Variables with the proxy for https, the first one that is set counts.
const PROXY: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
/// Variables with the hosts that are reached without it.
const NO_PROXY: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// Port of an http proxy that names none.
const DEFAULT_PORT: u16 = 1080;

/// A proxy. Its URL may hold a password, so it has no `Debug`.
#[derive(Clone)]
pub(crate) struct Proxy {
    /// Scheme, credentials, host and port.
    pub(crate) url: Url,
    /// The variable that names it; `None` if the setting `proxy` does.
    pub(crate) variable: Option<&'static str>,
}

/// A proxy without credentials, because flags are public and states are kept; `None`: off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProxySetting(Option<Url>);

/// Why text does not name a proxy.
const MALFORMED: &str = "expected http://HOST:PORT or https://HOST:PORT";

impl Proxy {
    /// The proxy for requests to a URL; `None` if they are sent directly.
    pub(crate) fn find(target: &Url, setting: Option<&ProxySetting>, env: &Env) -> Result<Option<Self>> {
        // A proxy could read a plain request, and loopback needs none.
        if target.scheme() == "http" {
            return Ok(None);
        }
        if let Some(ProxySetting(url)) = setting {
            return Ok(url.clone().map(|url| Self { url, variable: None }));
        }
        let Some((variable, text)) = first(env, &PROXY)? else { return Ok(None) };
        let host = target.host_str().unwrap_or_default();
        if first(env, &NO_PROXY)?.is_some_and(|(_, list)| is_exempt(host, list)) {
            return Ok(None);
        }
        let url = parse(text).map_err(|reason| SettingsError::new(format_args!("{variable}: {reason}")))?;
        Ok(Some(Self { url, variable: Some(variable) }))
    }

    /// The proxy, without its credentials.
    pub(crate) fn text(&self) -> String {
        let url = self.url.origin().ascii_serialization();
        let credentials = if has_credentials(&self.url) { ", with credentials" } else { "" };
        format!("{}{credentials}", sanitize(&url))
    }
}

impl FromStr for ProxySetting {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.eq_ignore_ascii_case("off") {
            return Ok(Self(None));
        }
        let url = parse(text).ok().filter(|url| !has_credentials(url));
        url.map(|url| Self(Some(url)))
            .ok_or("expected http://HOST:PORT or https://HOST:PORT without credentials, or off")
    }
}

impl fmt::Display for ProxySetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(url) = &self.0 else { return f.write_str("off") };
        // `Url` drops the port 80, which is not the default of a proxy.
        let port = if url.scheme() == "http" && url.port().is_none() { ":80" } else { "" };
        write!(f, "{}{port}", url.as_str().trim_end_matches('/'))
    }
}

/// The first of these variables that is set, and its text.
fn first<'e>(env: &'e Env, names: &[&'static str]) -> Result<Option<(&'static str, &'e str)>> {
    let found = names.iter().find_map(|name| Some(env.text(name).transpose()?.map(|text| (*name, text))));
    found.transpose().map_err(SettingsError::new)
}

fn parse(text: &str) -> Result<Url, &'static str> {
    let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let mut url = Url::parse(&text).map_err(|_| MALFORMED)?;
    let is_http = ["http", "https"].contains(&url.scheme());
    let is_host = url.host_str().is_some_and(|host| ip(host).is_some() || host.parse::<Domain>().is_ok());
    if !is_http || !is_host || url.port() == Some(0) {
        return Err(MALFORMED);
    }
    let authority = text.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    // 80 is the default for other URLs, so `Url` drops it.
    if url.scheme() == "http" && url.port().is_none() && !authority.ends_with(":80") {
        url.set_port(Some(DEFAULT_PORT)).map_err(|()| MALFORMED)?;
    }
    url.set_path("");
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

/// Whether a host is in a list of names, addresses and networks, separated by commas or blanks. A name matches the
/// domains below it, too.
fn is_exempt(host: &str, list: &str) -> bool {
    let mut entries = list.split([',', ' ', '\t']).filter(|entry| !entry.is_empty());
    match ip(host) {
        _ if list == "*" => true,
        Some(address) => entries.any(|entry| contains(entry, address)),
        None => entries.any(|entry| is_same_or_below(host.trim_end_matches('.'), entry)),
    }
}

/// The address in the host of a URL.
fn ip(host: &str) -> Option<IpAddr> {
    host.trim_matches(['[', ']']).parse().ok()
}

fn is_same_or_below(host: &str, entry: &str) -> bool {
    let name = entry.strip_suffix('.').unwrap_or(entry).to_ascii_lowercase();
    let name = name.strip_prefix('.').unwrap_or(&name);
    let start = host.strip_suffix(name).filter(|_| !name.is_empty());
    start.is_some_and(|start| start.is_empty() || start.ends_with('.'))
}

/// Whether an entry is this address, or a network with it. Zero bits mean the whole address.
fn contains(entry: &str, address: IpAddr) -> bool {
    let (network, bits) = entry.split_once('/').unwrap_or((entry, "0"));
    let (Ok(network), Ok(bits)) = (network.parse::<IpAddr>(), bits.parse::<u32>()) else { return false };
    let (difference, width) = match (network, address) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (u128::from(u32::from(one) ^ u32::from(other)), 32),
        (IpAddr::V6(one), IpAddr::V6(other)) => (u128::from(one) ^ u128::from(other), 128),
        _ => return false,
    };
    let bits = if bits == 0 { width } else { bits };
    bits <= width && difference.checked_shr(width - bits).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_urls_of_http_or_https() {
        let rows = [
            ("http://proxy.example:3128", Ok("http://proxy.example:3128/")),
            ("proxy.example:3128", Ok("http://proxy.example:3128/")),
            ("proxy.example", Ok("http://proxy.example:1080/")),
            ("http://proxy.example:80/path?x#y", Ok("http://proxy.example/")),
            ("https://proxy.example", Ok("https://proxy.example/")),
            ("http://[::1]", Ok("http://[::1]:1080/")),
            ("http://user:word@192.0.2.1:8080", Ok("http://user:word@192.0.2.1:8080/")),
            ("http://user:p%40ss%3a@proxy.example:80", Ok("http://user:p%40ss%3a@proxy.example/")),
            ("http://user:p@ss@proxy.example:80", Ok("http://user:p%40ss@proxy.example/")),
            ("user@proxy.example", Ok("http://user@proxy.example:1080/")),
            ("socks5://proxy.example:1080", Err(MALFORMED)),
            ("ftp://proxy.example", Err(MALFORMED)),
            ("http://", Err(MALFORMED)),
            (":3128", Err(MALFORMED)),
            ("http://proxy.example:port", Err(MALFORMED)),
            ("http://proxy.example:0", Err(MALFORMED)),
            ("http://proxy.example:65536", Err(MALFORMED)),
            ("http://[::1", Err(MALFORMED)),
            ("http://proxy example", Err(MALFORMED)),
            ("http://{proxy}:3128", Err(MALFORMED)),
        ];
        for (text, expected) in rows {
            let parsed = parse(text).map(String::from);
            assert_eq!(parsed, expected.map(str::to_owned), "{text}");
            if let Ok(url) = parse(text) {
                let shown = Proxy { url, variable: None }.text();
                assert_eq!(shown.ends_with(", with credentials"), text.contains('@'), "{shown}");
                assert!(!shown.contains('@') && !shown.contains("user"), "{shown}");
            }
        }
    }

    #[test]
    fn networks_of_ipv6_are_exempt() {
        for (list, expected) in [("::1", true), ("::/64", true), ("2001:db8::/32", false), ("::1/129", false)]
        {
            assert_eq!(is_exempt("[::1]", list), expected, "{list}");
        }
    }

    #[test]
    fn proxies_with_credentials_are_refused() {
        for (text, expected) in [
            ("http://proxy.example:3128", Some("http://proxy.example:3128")),
            ("proxy.example", Some("http://proxy.example:1080")),
            ("proxy.example:80", Some("http://proxy.example:80")),
            ("https://proxy.example", Some("https://proxy.example")),
            ("OFF", Some("off")),
            ("http://user:hunter2@proxy.example:3128", None),
            ("user@proxy.example", None),
            ("socks5://proxy.example", None),
            ("", None),
        ] {
            let found = text.parse::<ProxySetting>().map(|proxy| proxy.to_string());
            assert_eq!(found.ok().as_deref(), expected, "{text}");
        }
    }
}
