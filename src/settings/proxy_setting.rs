//! The setting `proxy`, which replaces the variables that curl reads.

use std::fmt;
use std::str::FromStr;

use reqwest::Url;

use super::proxy;

/// A proxy without credentials, because flags are public and states are kept, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProxySetting {
    Off,
    Url(Url),
}

impl FromStr for ProxySetting {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.eq_ignore_ascii_case("off") {
            return Ok(Self::Off);
        }
        match proxy::parse(text) {
            Ok((url, None)) => Ok(Self::Url(url)),
            Ok((_, Some(_))) | Err(_) => {
                Err("expected http://HOST:PORT or https://HOST:PORT without credentials, or off")
            }
        }
    }
}

impl fmt::Display for ProxySetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Url(url) => {
                // `Url` drops the port 80, which is not the default of a proxy.
                let port = if url.scheme() == "http" && url.port().is_none() { ":80" } else { "" };
                write!(f, "{}{port}", url.as_str().trim_end_matches('/'))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
