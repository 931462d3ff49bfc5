//! Where things are: the service's base URL, and edges that are asked in place of those that the service names.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use reqwest::Url;

use super::Error;
use crate::names::Domain;

/// Address of the service: https, or plain http on loopback; no credentials, ends in a slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BaseUrl(Url);

impl BaseUrl {
    /// The address of a path below the base.
    pub(crate) fn join(&self, path: &str) -> Url {
        let mut url = self.0.clone();
        url.set_path(&format!("{}{}", self.0.path(), path.trim_start_matches('/')));
        url
    }

    /// Whether requests are sent in the clear, which happens on loopback only.
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
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = |reason: &str| Error::Bad { name: "base URL".into(), reason: reason.into() };
        let mut url = Url::parse(text).map_err(|_| bad("it is not a URL; https://HOST is wanted"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad("it holds credentials; the API key goes into a file of its own"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(bad("it has a query or a fragment; only a path may follow the host"));
        }
        match (url.scheme(), url.host_str()) {
            ("https", Some(_)) => {}
            ("http", Some(host)) if is_loopback(host) => {}
            ("http", Some(_)) => {
                return Err(bad(
                    "plain http is for loopback addresses only; the private key travels in the request",
                ));
            }
            _ => return Err(bad("https://HOST is wanted")),
        }
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        Ok(Self(url))
    }
}

/// Whether two texts lead to one service.
pub(super) fn is_same_url(one: &str, other: &str) -> bool {
    matches!((one.parse::<BaseUrl>(), other.parse::<BaseUrl>()), (Ok(one), Ok(other)) if one == other)
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Edges, separated by commas: `HOST:PORT` each, an IPv6 address in brackets.
pub(super) fn check_edge_address(text: &str, name: &str) -> Result<(), Error> {
    let is_host = |host: &str| {
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        host.parse::<Domain>().is_ok() || address.is_some_and(|host| host.parse::<IpAddr>().is_ok())
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port != 0);
    let is_one =
        |edge: &str| edge.rsplit_once(':').is_some_and(|(host, port)| is_port(port) && is_host(host));
    if addresses(text).all(is_one) {
        Ok(())
    } else {
        Err(Error::Bad { name: name.into(), reason: "HOST:PORT is wanted".into() })
    }
}

pub(super) fn addresses(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_and_credentials_are_refused() {
        let rows = [
            ("https://api.example.net", true),
            ("https://api.example.net/v1/", true),
            ("http://127.0.0.1:8790", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:8790", true),
            ("http://localhost:8790", true),
            ("http://api.example.net", false),
            ("http://127.0.0.1.example.net", false),
            ("http://192.168.0.1", false),
            ("https://user:word@api.example.net", false),
            ("https://user@api.example.net", false),
            ("https://api.example.net?x=1", false),
            ("https://api.example.net#x", false),
            ("ftp://api.example.net", false),
            ("api.example.net", false),
            ("", false),
        ];
        for (url, accepted) in rows {
            assert_eq!(url.parse::<BaseUrl>().is_ok(), accepted, "{url}");
        }
    }

    #[test]
    fn a_refused_url_is_not_repeated() {
        let error = "https://user:hunter2@api.example.net".parse::<BaseUrl>().unwrap_err();
        assert!(!error.to_string().contains("hunter2"));
    }

    #[test]
    fn a_path_is_joined_below_the_base() {
        for base in ["https://h/v1", "https://h/v1/"] {
            let base: BaseUrl = base.parse().unwrap();
            assert_eq!(base.join("/api/certs").as_str(), "https://h/v1/api/certs");
        }
    }

    #[test]
    fn an_edge_address_has_a_host_and_a_port() {
        for (text, accepted) in [
            ("127.0.0.1:443", true),
            ("[::1]:443", true),
            ("edge.example:8443", true),
            ("edge.example", false),
            ("::1:443", false),
            (":443", false),
            ("edge.example:0", false),
        ] {
            assert_eq!(check_edge_address(text, "x").is_ok(), accepted, "{text}");
        }
    }
}
