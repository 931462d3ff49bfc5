//! The `heartbeat_url` key of the configuration file: the URL that is called after each `sync`. Anyone who knows it can
//! send heartbeats for this host, so it is a secret: errors do not show it.

use std::str::FromStr;

use reqwest::Url;

use super::address::private_url;
use super::{Proxy, SettingsError};
use crate::env::Env;

/// Name of the key.
pub(super) const KEY: &str = "heartbeat_url";

/// An https URL, or plain http on loopback. It has no `Debug`, so that nothing prints it.
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

    /// The proxy through which it is called; `None`: directly.
    pub(crate) fn proxy(&self, env: &Env) -> Result<Option<Proxy>, SettingsError> {
        Proxy::find(&self.0, None, env)
    }
}

impl FromStr for HeartbeatUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = private_url(text)?;
        if url.fragment().is_some() { Err("it has a fragment, which is never sent") } else { Ok(Self(url)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        const NOT_A_URL: &str = "expected a URL such as https://HOST";
        const PLAIN_HTTP: &str =
            "expected https: plain http is for loopback addresses only, because secrets are sent";
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
