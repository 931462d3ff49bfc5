//! Faults to inject into API requests. The first queued fault that matches a request applies to it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A fault, the requests it matches, and how often it applies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// `METHOD /path`. A `*` matches any method, one path segment or, as the last segment, all that follow;
    /// the last segment may also be a prefix and a `*`. A lone `*` matches every request.
    #[serde(rename = "match")]
    pub pattern: String,
    /// What to do with the request.
    #[serde(rename = "do")]
    pub action: FaultAction,
    /// For `status`: the status code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// For `status`: response headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// For `status`: the body. A string is sent as it is, any other value as JSON, null as an empty body.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub body: Value,
    /// For `truncate`: how many bytes of the body to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// For `stall`: how long to delay the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// How many requests the fault applies to.
    #[serde(default = "once")]
    pub times: u32,
}

/// What a fault does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultAction {
    /// Responds with a given status without executing the request.
    Status,
    /// Closes the connection without executing the request.
    CloseBefore,
    /// Executes and commits the request, then closes the connection without responding.
    CloseAfter,
    /// Executes the request, then closes the connection in the middle of the response body.
    Truncate,
    /// Executes the request and delays the response.
    Stall,
}

impl FaultAction {
    /// Returns the JSON value of `do`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::CloseBefore => "close_before",
            Self::CloseAfter => "close_after",
            Self::Truncate => "truncate",
            Self::Stall => "stall",
        }
    }
}

impl Fault {
    /// Creates a fault that responds with a status without executing the request.
    pub fn status(pattern: &str, status: u16) -> Self {
        Self { status: Some(status), ..Self::new(pattern, FaultAction::Status) }
    }

    /// Creates a fault that closes the connection without executing the request.
    pub fn close_before(pattern: &str) -> Self {
        Self::new(pattern, FaultAction::CloseBefore)
    }

    /// Creates a fault that executes the request and closes the connection without responding.
    pub fn close_after(pattern: &str) -> Self {
        Self::new(pattern, FaultAction::CloseAfter)
    }

    /// Creates a fault that executes the request and closes the connection after `bytes` bytes of the body.
    pub fn truncate(pattern: &str, bytes: usize) -> Self {
        Self { bytes: Some(bytes), ..Self::new(pattern, FaultAction::Truncate) }
    }

    /// Creates a fault that executes the request and responds after `seconds` seconds.
    pub fn stall(pattern: &str, seconds: f64) -> Self {
        Self { seconds: Some(seconds), ..Self::new(pattern, FaultAction::Stall) }
    }

    /// Sets how many requests the fault applies to; the default is 1.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self { times, ..self }
    }

    /// Adds a response header to a `status` fault.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Sets the response body of a `status` fault. A string is sent as it is.
    #[must_use]
    pub fn body(self, body: impl Into<Value>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// Returns what is missing or invalid.
    pub(crate) fn check(&self) -> Result<(), String> {
        let is_valid_header = |(name, value): (&String, &String)| {
            name.parse::<http::HeaderName>().is_ok() && value.parse::<http::HeaderValue>().is_ok()
        };
        let problem = match self.action {
            FaultAction::Status if !self.status.is_some_and(|code| (200..=599).contains(&code)) => {
                "status needs a status from 200 to 599"
            }
            FaultAction::Truncate if self.bytes.is_none() => "truncate needs bytes",
            FaultAction::Stall if !self.seconds.is_some_and(|s| (0.0..=86_400.0).contains(&s)) => {
                "stall needs seconds from 0 to 86400"
            }
            _ if !self.headers.iter().all(is_valid_header) => "headers has an invalid name or value",
            _ if self.pattern != "*" && !self.pattern.contains(" /") => {
                "match must be \"METHOD /path\" or \"*\""
            }
            _ => return Ok(()),
        };
        Err(problem.to_owned())
    }

    fn new(pattern: &str, action: FaultAction) -> Self {
        Self {
            pattern: pattern.to_owned(),
            action,
            status: None,
            headers: BTreeMap::new(),
            body: Value::Null,
            bytes: None,
            seconds: None,
            times: 1,
        }
    }

    fn matches(&self, method: &str, path: &str) -> bool {
        if self.pattern == "*" {
            return true;
        }
        let Some((expected_method, path_pattern)) = self.pattern.split_once(' ') else {
            return false;
        };
        (expected_method == "*" || expected_method.eq_ignore_ascii_case(method))
            && path_matches(path_pattern, path)
    }
}

/// The faults that still apply to requests.
#[derive(Default)]
pub(crate) struct Faults {
    queue: Mutex<Vec<Fault>>,
    random: Mutex<Option<RandomFaults>>,
}

impl Faults {
    pub(crate) fn add(&self, faults: impl IntoIterator<Item = Fault>) {
        self.queue().extend(faults);
    }

    /// Applies a random one of these faults to every other request, on average and without end. The choice
    /// depends on the seed and the order of requests only. Queued faults take precedence.
    pub(crate) fn set_random(&self, seed: u64, faults: impl IntoIterator<Item = Fault>) {
        let random =
            RandomFaults { rng: fastrand::Rng::with_seed(seed), faults: faults.into_iter().collect() };
        *self.random.lock().unwrap_or_else(PoisonError::into_inner) = Some(random);
    }

    /// Returns the queued faults.
    pub(crate) fn list(&self) -> Vec<Fault> {
        self.queue().clone()
    }

    /// Removes the queued faults.
    pub(crate) fn clear(&self) {
        self.queue().clear();
    }

    /// Returns the fault for this request, if any, and counts it as applied.
    pub(crate) fn take(&self, method: &str, path: &str) -> Option<Fault> {
        let mut queue = self.queue();
        queue.retain(|fault| fault.times > 0);
        let Some(fault) = queue.iter_mut().find(|fault| fault.matches(method, path)) else {
            let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
            return random.as_mut().and_then(|random| random.draw(method, path));
        };
        fault.times -= 1;
        Some(fault.clone())
    }

    fn queue(&self) -> MutexGuard<'_, Vec<Fault>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Faults that apply at random.
struct RandomFaults {
    rng: fastrand::Rng,
    faults: Vec<Fault>,
}

impl RandomFaults {
    fn draw(&mut self, method: &str, path: &str) -> Option<Fault> {
        let matching: Vec<&Fault> = self.faults.iter().filter(|fault| fault.matches(method, path)).collect();
        let applies = self.rng.bool();
        self.rng.choice(matching).filter(|_| applies).cloned()
    }
}

fn path_matches(pattern: &str, path: &str) -> bool {
    let mut segments = path.split('/');
    let mut patterns = pattern.split('/').peekable();
    while let Some(pattern) = patterns.next() {
        let is_last = patterns.peek().is_none();
        match segments.next() {
            Some(_) if pattern == "*" && is_last => return true,
            Some(segment) if pattern == "*" || pattern == segment => {}
            Some(segment) if is_last => {
                return pattern.strip_suffix('*').is_some_and(|prefix| segment.starts_with(prefix));
            }
            _ => return false,
        }
    }
    segments.next().is_none()
}

fn once() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_matches_whole_path() {
        let rows = [
            ("POST /api/certs/upload", "POST", "/api/certs/upload", true),
            ("POST /api/certs/upload", "GET", "/api/certs/upload", false),
            ("POST /api/certs", "POST", "/api/certs/upload", false),
            ("GET /api/sites/*", "GET", "/api/sites/10", true),
            ("POST /api/sites/*/update", "POST", "/api/sites/10/update", true),
            ("POST /api/sites/*/update", "POST", "/api/sites/10/enable", false),
            ("* /api/*", "DELETE", "/api/sites/10", true),
            ("GET /api/cert*", "GET", "/api/certs", true),
            ("*", "GET", "/", true),
        ];
        for (pattern, method, path, expected) in rows {
            assert_eq!(
                Fault::close_before(pattern).matches(method, path),
                expected,
                "{pattern} {method} {path}"
            );
        }
    }

    #[test]
    fn random_faults_apply_to_half() {
        let faults = Faults::default();
        faults.set_random(7, [Fault::status("GET /a", 503), Fault::close_before("GET /a")]);
        let drawn: Vec<_> = (0..1000).map(|_| faults.take("GET", "/a").map(|fault| fault.action)).collect();
        let count = |action| drawn.iter().filter(|drawn| **drawn == action).count();
        assert!((400..600).contains(&count(None)), "{}", count(None));
        assert!(count(Some(FaultAction::Status)) > 150 && count(Some(FaultAction::CloseBefore)) > 150);
        assert_eq!(faults.take("GET", "/b"), None);
    }

    #[test]
    fn queued_faults_apply_in_order() {
        let faults = Faults::default();
        faults.add([Fault::status("GET /a", 503).times(2), Fault::close_before("GET /a")]);
        let drawn: Vec<_> = (0..4).map(|_| faults.take("GET", "/a").map(|fault| fault.action)).collect();
        assert_eq!(
            drawn,
            [Some(FaultAction::Status), Some(FaultAction::Status), Some(FaultAction::CloseBefore), None]
        );
    }
}
