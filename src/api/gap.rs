//! Why a list of sites or records may be incomplete. The elements of such a list are used; an element that it lacks
//! may still exist.

use serde_json::{Map, Value};

use super::envelope::{ListKind, is_set};
use super::listing::Unreadable;
use super::response::reason;
use super::wire;
use crate::names::Domain;
use crate::text::{count, sanitize};

/// A reason why a list may lack elements.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Gap {
    /// Free of secrets.
    message: String,
    /// What is known of the elements that it may lack.
    hidden: Vec<Unreadable>,
}

impl Gap {
    /// The gaps that a response shows apart from the elements of its list. `listed` is the number of its elements,
    /// `None` if the list is null.
    pub(super) fn of_response(json: &Value, listed: Option<usize>, kind: ListKind) -> Vec<Self> {
        let (is_null, listed, noun) = (listed.is_none(), listed.unwrap_or_default(), kind.noun);
        let most = |name| find_fields(json, name).filter_map(number).max();
        let (total, pages) = (most("total"), most("total_pages"));
        let mut next = ["next", "next_page", "has_more"].iter().flat_map(|name| find_fields(json, name));
        let has_more = total.is_none() && pages.is_some_and(|pages| pages > 1) || next.any(is_set);
        let error = reported_error(json);
        let error = error.map(|error| reason(error).map_or_else(|| "no reason is given".into(), sanitize));
        let truncated = total.filter(|total| *total > listed as u64);
        let messages = [
            truncated.map(|total| {
                let total = count(usize::try_from(total).unwrap_or(usize::MAX), noun);
                format!("the service lists only {listed} of {total}")
            }),
            (truncated.is_none() && has_more)
                .then(|| format!("the service lists {} and refers to another page", count(listed, noun))),
            // Some services write an empty list as `null`.
            (is_null && total != Some(0)).then(|| format!("the service sent null as its list of {noun}s")),
            error.map(|error| format!("the service reported an error with its list of {noun}s: {error}")),
        ];
        let gap = |message| Self { message, hidden: vec![Unreadable::default()] };
        messages.into_iter().flatten().map(gap).collect()
    }

    /// The gap that unreadable elements leave.
    pub(super) fn of_elements(hidden: Vec<Unreadable>, kind: ListKind) -> Option<Self> {
        let number = count(hidden.len(), "element");
        let message = format!("the service's list of {}s has {number} that cannot be read", kind.noun);
        (!hidden.is_empty()).then_some(Self { message, hidden })
    }

    /// Whether the list may lack an element for a domain that meets the condition.
    pub(crate) fn may_hide(&self, is_relevant: impl Fn(&Domain) -> bool) -> bool {
        let mut domains = self.hidden.iter().map(|element| element.domains.as_deref());
        domains.any(|domains| domains.is_none_or(|domains| domains.iter().any(&is_relevant)))
    }

    /// Whether the list may lack a site that is bound to this record.
    pub(crate) fn may_hide_binding(&self, record: u64) -> bool {
        self.hidden.iter().any(|site| site.records.as_ref().is_none_or(|records| records.contains(&record)))
    }
}

/// The values of fields with this name in an object and those in it, but not in elements of lists.
fn find_fields<'a>(json: &'a Value, name: &'a str) -> Box<dyn Iterator<Item = &'a Value> + 'a> {
    let inner = json.as_object().into_iter().flat_map(Map::values);
    Box::new(json.get(name).into_iter().chain(inner.flat_map(move |value| find_fields(value, name))))
}

/// Reads a count, also with spaces around it. A positive number that is no integer, or too large for one, counts as more
/// than can be listed.
fn number(value: &Value) -> Option<u64> {
    let text = || value.as_str().map(str::trim);
    let is_positive = value.as_f64().or_else(|| text()?.parse().ok()).is_some_and(|number: f64| number > 0.0);
    wire::id(value).or_else(|| text()?.parse().ok()).or_else(|| is_positive.then_some(u64::MAX))
}

/// The error that a successful response reports. Only wrappers count: other objects may have fields of the same
/// names.
fn reported_error(json: &Value) -> Option<&Value> {
    let fields = json.as_object()?;
    let error = ["error", "errors"].iter().filter_map(|name| fields.get(*name)).find(|error| is_set(error));
    let is_false = |name: &str| fields.get(name) == Some(&Value::Bool(false));
    let status = fields.get("status").and_then(Value::as_str).unwrap_or_default();
    let code = fields.get("code").and_then(Value::as_u64).unwrap_or_default();
    let is_failure = is_false("ok")
        || is_false("success")
        || ["error", "fail", "failed"].contains(&status)
        || (400..600).contains(&code)
        || (40_000..60_000).contains(&code);
    let mut wrapped = ["data", "result"].iter().filter_map(|wrapper| fields.get(*wrapper));
    error.or_else(|| is_failure.then_some(json)).or_else(|| wrapped.find_map(reported_error))
}

#[cfg(test)]
impl Gap {
    /// The gap of a list that may lack anything.
    pub(crate) fn any() -> Self {
        Self { message: "truncated".into(), hidden: vec![Unreadable::default()] }
    }

    /// The gap of a list that may only lack sites of other domains, bound to these records.
    pub(crate) fn of_bindings(records: Vec<u64>) -> Self {
        let site = Unreadable { id: None, records: Some(records), domains: Some(Vec::new()) };
        Self { message: "unreadable".into(), hidden: vec![site] }
    }
}
