//! The base URL of the service, the URL of the heartbeat, and edge addresses that replace those of the sites' `cname`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use reqwest::Url;
use serde::Serialize;

use crate::names::Domain;

/// Base URL of the service: https, or plain http on loopback; without credentials; ends in a slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BaseUrl(pub(super) Url);

/// `HOST:PORT` of each edge to verify, at least one, separated by commas; IPv6 addresses are in brackets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct EdgeAddresses(String);

impl BaseUrl {
    /// The URL of a path below the base.
    pub(crate) fn join(&self, path: &str) -> Url {
        let mut url = self.0.clone();
        url.set_path(&format!("{}{}", self.0.path(), path.trim_start_matches('/')));
        url
    }

    /// Whether requests are sent without TLS, which is allowed on loopback only.
    pub(crate) fn is_plain(&self) -> bool {
        self.0.scheme() == "http"
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl FromStr for BaseUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut url = private_url(text)?;
        if has_credentials(&url) || url.query().is_some() || url.fragment().is_some() {
            return Err(
                "only a path may follow the host, no credentials, query or fragment; put the API key into a file of its own",
            );
        }
        url.set_path(&format!("{}/", url.path().trim_end_matches('/')));
        Ok(Self(url))
    }
}

/// Parses the URL of a server that secrets are sent to: https, or plain http to this machine. It holds nothing that `Url`
/// would drop or encode.
fn private_url(text: &str) -> Result<Url, &'static str> {
    const EXPECTED: &str = "expected a URL such as https://HOST";
    let is_encoded = !text.contains(|c: char| c.is_whitespace() || c.is_control());
    let url = Url::parse(text).ok().filter(|url| is_encoded && url.port() != Some(0)).ok_or(EXPECTED)?;
    let Some(host) = url.host_str().map(|host| host.trim_matches(['[', ']'])) else { return Err(EXPECTED) };
    let is_loopback =
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback => Ok(url),
        "http" => Err("expected https: plain http is for loopback addresses only, because secrets are sent"),
        _ => Err(EXPECTED),
    }
}

pub(super) fn has_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// The URL that is called after each `sync`: https, or plain http on loopback. Anyone who knows it can send heartbeats for
/// this host, so it is a secret: errors do not show it, and it has no `Debug`, so that nothing prints it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct HeartbeatUrl(Url);

impl HeartbeatUrl {
    /// The URL to call after a run: appends the exit code to the path, before any query.
    pub(crate) fn with_exit_code(&self, exit_code: u8) -> Url {
        let mut url = self.0.clone();
        // Only URLs without a host, such as `mailto:`, have no segments.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push(&exit_code.to_string());
        }
        url
    }
}

impl FromStr for HeartbeatUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = private_url(text)?;
        if url.fragment().is_some() { Err("it has a fragment, which is never sent") } else { Ok(Self(url)) }
    }
}

impl EdgeAddresses {
    pub(crate) fn to_vec(&self) -> Vec<String> {
        self.0.split(',').map(str::to_owned).collect()
    }
}

impl FromStr for EdgeAddresses {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let edges: Vec<&str> = text.split(',').map(str::trim).collect();
        let is_valid = edges.iter().all(|edge| is_edge(edge));
        is_valid.then(|| Self(edges.join(","))).ok_or("expected HOST:PORT")
    }
}

fn is_edge(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host =
        host.parse::<Domain>().is_ok() || address.is_some_and(|host| host.parse::<IpAddr>().is_ok());
    is_host && port.parse::<u16>().is_ok_and(|port| port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONLY_A_PATH: &str = "only a path may follow the host, no credentials, query or fragment; put the API key into a file of its own";
    const NOT_A_URL: &str = "expected a URL such as https://HOST";
    const PLAIN_HTTP: &str =
        "expected https: plain http is for loopback addresses only, because secrets are sent";

    #[test]
    fn plain_http_and_credentials_are_refused() {
        let rows = [
            ("https://api.example.net", Ok(())),
            ("https://api.example.net/v1/", Ok(())),
            ("http://127.0.0.1:8790", Ok(())),
            ("http://127.9.9.9", Ok(())),
            ("http://[::1]:8790", Ok(())),
            ("http://localhost:8790", Ok(())),
            ("http://api.example.net", Err(PLAIN_HTTP)),
            ("http://127.0.0.1.example.net", Err(PLAIN_HTTP)),
            ("http://192.168.0.1", Err(PLAIN_HTTP)),
            ("https://user:word@api.example.net", Err(ONLY_A_PATH)),
            ("https://user@api.example.net", Err(ONLY_A_PATH)),
            ("https://api.example.net?x=1", Err(ONLY_A_PATH)),
            ("https://api.example.net#x", Err(ONLY_A_PATH)),
            ("ftp://api.example.net", Err(NOT_A_URL)),
            ("ftp://user:word@api.example.net", Err(NOT_A_URL)),
            ("api.example.net", Err(NOT_A_URL)),
            ("https://api .example.net", Err(NOT_A_URL)),
            ("https://api.example.net/a b", Err(NOT_A_URL)),
            ("https://api.example.net/\u{a0}", Err(NOT_A_URL)),
            ("https://api.example.net:0", Err(NOT_A_URL)),
            ("https://api.example.net:70000", Err(NOT_A_URL)),
            ("", Err(NOT_A_URL)),
        ];
        for (url, expected) in rows {
            assert_eq!(url.parse::<BaseUrl>().map(|_| ()), expected, "{url}");
        }
    }

    #[test]
    fn path_is_joined_below_base() {
        for base in ["https://h/v1", "https://h/v1/", "https://h/v1//"] {
            let base: BaseUrl = base.parse().unwrap();
            assert_eq!(base.join("/api/certs").as_str(), "https://h/v1/api/certs");
            assert_eq!(base.to_string().parse(), Ok(base), "as state files have it");
        }
    }

    #[test]
    fn edge_has_host_and_port() {
        for (text, accepted) in [
            ("127.0.0.1:443", true),
            ("[::1]:443", true),
            ("edge.example:8443", true),
            ("edge.example:8443, 127.0.0.1:443", true),
            ("edge.example:8443,", false),
            ("edge.example", false),
            ("::1:443", false),
            (":443", false),
            ("edge.example:0", false),
            ("edge.example:70000", false),
            ("", false),
        ] {
            assert_eq!(text.parse::<EdgeAddresses>().is_ok(), accepted, "{text}");
        }
    }

    #[test]
    fn exit_code_is_the_last_segment() {
        for (url, called) in [
            ("https://hc.example", "https://hc.example/75"),
            ("https://hc.example/", "https://hc.example/75"),
            ("https://hc.example/ping/abc", "https://hc.example/ping/abc/75"),
            ("https://hc.example/ping/abc/", "https://hc.example/ping/abc/75"),
            ("https://hc.example:8443/abc?create=1&x=/", "https://hc.example:8443/abc/75?create=1&x=/"),
            ("https://hc.example?msg=a%20b", "https://hc.example/75?msg=a%20b"),
            ("https://hc.example/a%2Fb", "https://hc.example/a%2Fb/75"),
            ("https://user:word@hc.example/abc", "https://user:word@hc.example/abc/75"),
            ("http://[::1]:8000/abc", "http://[::1]:8000/abc/75"),
        ] {
            assert_eq!(url.parse::<HeartbeatUrl>().unwrap().with_exit_code(75).as_str(), called);
        }
    }

    #[test]
    fn invalid_urls_are_refused_but_not_shown() {
        for (url, expected) in [
            ("http://hc.example/secret", PLAIN_HTTP),
            ("http://192.168.0.1/secret", PLAIN_HTTP),
            ("https://hc.example/secret#now", "it has a fragment, which is never sent"),
            ("ftp://hc.example/secret", NOT_A_URL),
            ("mailto:secret@hc.example", NOT_A_URL),
            ("hc.example/secret", NOT_A_URL),
            ("https://hc.example/a secret", NOT_A_URL),
            ("https://hc.example:0/secret", NOT_A_URL),
            ("https://", NOT_A_URL),
            ("", NOT_A_URL),
        ] {
            let error = url.parse::<HeartbeatUrl>().err().unwrap();
            assert_eq!(error, expected, "{url}");
            assert!(!error.contains("secret/") && !error.contains("hc.example"));
        }
    }
}
