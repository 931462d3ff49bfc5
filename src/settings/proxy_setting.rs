//! The setting `proxy`, which replaces the variables that curl reads.

use std::fmt;
use std::str::FromStr;

use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::proxy;
use super::value::{Kind, Value};
use super::value_error::ValueError;
use crate::text::sanitize;

/// A proxy without credentials, because flags are public and states are kept, or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum ProxySetting {
    Off,
    Url(Url),
}

impl FromStr for ProxySetting {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        if text.eq_ignore_ascii_case("off") {
            return Ok(Self::Off);
        }
        match proxy::parse(text) {
            Ok((url, None)) => Ok(Self::Url(url)),
            Ok((_, Some(_))) | Err(_) => Err(ValueError::Not(Kind::Proxy)),
        }
    }
}

impl fmt::Display for ProxySetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Url(url) => f.write_str(url.as_str().trim_end_matches('/')),
        }
    }
}

impl TryFrom<String> for ProxySetting {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map_err(|_| "not a proxy")
    }
}

impl From<ProxySetting> for String {
    fn from(proxy: ProxySetting) -> Self {
        proxy.to_string()
    }
}

impl Value for ProxySetting {
    const KIND: Kind = Kind::Proxy;

    fn from_text(text: &str) -> Result<Self, ValueError> {
        text.parse()
    }

    fn text(&self) -> String {
        sanitize(&self.to_string())
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
            ("https://proxy.example", Some("https://proxy.example")),
            ("OFF", Some("off")),
            ("http://user:hunter2@proxy.example:3128", None),
            ("user@proxy.example", None),
            ("socks5://proxy.example", None),
            ("", None),
        ] {
            let found = ProxySetting::from_text(text).map(|proxy| proxy.text());
            assert_eq!(found.ok().as_deref(), expected, "{text}");
        }
        let error = ProxySetting::from_text("http://user:hunter2@proxy.example").unwrap_err();
        assert!(!error.describe("http://user:hunter2@proxy.example").contains("hunter2"));
    }
}
