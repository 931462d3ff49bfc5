//! Lists of sites and records, read from a response, and why they may be incomplete. An element that cannot be read does
//! not hide the others; an element that a list lacks may still exist.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::envelope::{ListKind, find_list, is_set};
use super::listing::{Items, Unreadable};
use super::response::reason;
use super::wire::{self, Listed};
use crate::names::Domain;
use crate::text::{count, sanitize};

/// The elements of a list.
#[derive(Debug)]
pub(crate) struct List<T> {
    pub(crate) items: Vec<T>,
    /// Why elements may be missing; empty for a complete list.
    pub(crate) gaps: Vec<Gap>,
}

impl<T: Listed> List<T> {
    /// Makes the list of a response with this outline, which holds no secret. `None` if there is no list, or if none of
    /// its elements can be read.
    pub(super) fn new(outline: &Value, arrays: Vec<Items<T>>) -> Option<Self> {
        let kind = T::KIND;
        let list = find_list(outline, kind)?;
        let index = list.get(0).and_then(Value::as_u64).and_then(|index| usize::try_from(index).ok());
        let array = index.and_then(|index| arrays.into_iter().nth(index));
        let (mut items, unreadable) = array.map(|array| (array.items, array.unreadable)).unwrap_or_default();
        if items.is_empty() && !unreadable.is_empty() {
            return None;
        }
        // A page may have been sent twice, so elements with the same ID count once.
        let ids = items.iter().map(T::id).chain(unreadable.iter().filter_map(|element| element.id));
        let ids: HashSet<u64> = ids.collect();
        let without_id = unreadable.iter().filter(|element| element.id.is_none()).count();
        let listed = (!list.is_null()).then_some(ids.len() + without_id);
        let mut gaps = Gap::of_response(outline, listed, kind);
        gaps.extend(Gap::of_elements(unreadable, kind));
        items.shrink_to_fit();
        Some(Self { items, gaps })
    }

    /// The gap that may hide an element for a domain.
    pub(crate) fn gap_for(&self, domain: &Domain) -> Option<&Gap> {
        self.gaps.iter().find(|gap| gap.may_hide(|hidden| hidden == domain))
    }
}

/// A reason why a list may lack elements.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Gap {
    /// Free of secrets.
    message: String,
    /// Facts about the elements that it may lack.
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

#[cfg(test)]
impl<T: Listed> List<T> {
    pub(crate) fn complete(items: Vec<T>) -> Self {
        Self { items, gaps: Vec::new() }
    }

    /// Reads a response that holds no secret; `None` if it is invalid.
    pub(crate) fn of(json: &Value) -> Option<Self> {
        super::response::Response::of(200, [json.to_string().as_bytes()], std::sync::Arc::default())
            .list()
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::response::Response;
    use super::super::wire::{ApiObject, Record, Site};
    use super::*;
    use serde_json::json;

    fn gaps(json: &Value) -> Vec<String> {
        let list: List<Site> = List::of(json).unwrap();
        list.gaps.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn unreadable_elements_are_reported() {
        let json = json!({"sites": [{"id": 1, "domain": "a.example"}, {"cert_id": 7}], "total": 9});
        let list: List<Site> = List::of(&json).unwrap();
        let hides_binding = |record| list.gaps[1].may_hide_binding(record);
        assert_eq!((list.items.len(), hides_binding(7), hides_binding(8)), (1, true, false));
        let unreadable = "the service's list of sites has 1 element that cannot be read";
        assert_eq!(gaps(&json), ["the service lists only 2 of 9 sites", unreadable]);
        for json in [json!([1, 2]), json!([{"name": "without id"}])] {
            assert!(List::<Record>::of(&json).is_none(), "{json}");
        }
        for json in
            [json!({}), json!({"warnings": []}), json!({"error": "down"}), json!({"error": {"details": []}})]
        {
            assert!(List::<Site>::of(&json).is_none(), "{json}");
        }
    }

    #[test]
    fn unusual_first_element_hides_no_list() {
        let large = "y".repeat(100 << 10);
        for note in [r"\ud83d", &large] {
            let json = format!(
                r#"{{"stored":[{{"id":5,"domain":"a.example","note":"{note}"}},{{"id":6}}],"warnings":[]}}"#
            );
            let response = Response::<Record>::of(200, [json.as_bytes()], Arc::default());
            assert_eq!(response.list().unwrap().items.len(), 2, "{json:.100}");
        }
    }

    #[test]
    fn gaps_are_found_in_any_wrapper() {
        let site = json!({"id": 1, "domain": "a.example", "total": 9, "error": "x"});
        let only = "the service lists only 1 of 9 sites".to_owned();
        let error =
            |message: &str| format!("the service reported an error with its list of sites: {message}");
        let null = "the service sent null as its list of sites".to_owned();
        let paged = "the service lists 1 site and refers to another page".to_owned();
        for (json, expected) in [
            (json!({"sites": [site], "total": 1}), None),
            (json!({"sites": [site], "total": 0}), None),
            (json!([site]), None),
            (json!({"sites": [], "total": 0, "error": null, "errors": []}), None),
            (json!({"sites": null, "total": 0}), None),
            (json!({"sites": [site], "total": 1, "pages": 2}), None),
            (json!({"sites": [site], "page": 1, "pages": 1}), None),
            (json!({"sites": [site], "page": 1, "total_pages": 3}), Some(paged.clone())),
            (json!({"sites": [site], "next_page": 2}), Some(paged.clone())),
            (json!({"sites": [site], "total": 9}), Some(only.clone())),
            (json!({"sites": [site], "total": "9"}), Some(only.clone())),
            (json!({"sites": [site], "total": " 9"}), Some(only.clone())),
            (
                json!({"sites": [site], "total": "9.5"}),
                Some("the service lists only 1 of 18446744073709551615 sites".into()),
            ),
            (json!({"sites": [site, site], "total": 9}), Some(only.clone())),
            (json!({"sites": [site, site]}), None),
            (json!({"sites": [site], "total": 9.0}), Some(only.clone())),
            (json!({"data": {"list": [site], "total": 9}}), Some(only.clone())),
            (json!({"data": {"list": [site]}, "meta": {"page": {"total": 9}}}), Some(only.clone())),
            (json!({"total": 9, "data": {"result": {"list": [site], "total": 1}}}), Some(only)),
            (json!({"sites": [site], "has_more": true}), Some(paged.clone())),
            (json!({"sites": [site], "links": {"next": "/api/me/sites?page=2"}}), Some(paged)),
            (json!({"sites": [site], "links": {"next": null}}), None),
            (json!(null), Some(null.clone())),
            (json!({"sites": null}), Some(null.clone())),
            (json!({"data": null}), Some(null.clone())),
            (json!({"data": {"sites": null}}), Some(null.clone())),
            (json!({"sites": [], "total": 1}), Some("the service lists only 0 of 1 site".into())),
            (json!({"sites": [site], "error": "shard down"}), Some(error("shard down"))),
            (json!({"sites": [], "error": "database is down"}), Some(error("database is down"))),
            (json!({"sites": [], "errors": [{"message": "down"}]}), Some(error("down"))),
            (json!({"sites": [], "errors": [[12]]}), Some(error("no reason is given"))),
            (json!({"sites": [], "error": 12}), Some(error("no reason is given"))),
            (json!({"data": {"ok": false, "sites": [], "message": "down"}}), Some(error("down"))),
            (json!({"code": 403, "message": "forbidden", "data": []}), Some(error("forbidden"))),
            (json!({"code": 40301, "message": "forbidden", "data": []}), Some(error("forbidden"))),
            (json!({"code": 200, "message": "success", "data": []}), None),
        ] {
            assert_eq!(gaps(&json), Vec::from_iter(expected), "{json}");
        }
        let lacking = "the service lists only 0 of 1 site".to_owned();
        assert_eq!(gaps(&json!({"sites": null, "total": 1})), [lacking, null]);
    }

    #[test]
    fn unreadable_element_may_hide_its_domain() {
        let may_hide = |element: Value| {
            let list: List<Site> = List::of(&json!([{"id": 1, "domain": "a.example"}, element])).unwrap();
            let hides = |domain: &str| list.gap_for(&domain.parse().unwrap()).is_some();
            (hides("b.example"), hides("c.example"), list.gaps[0].may_hide_binding(5))
        };
        assert_eq!(may_hide(json!({"id": "x", "domain": "b.example"})), (true, false, false));
        assert_eq!(may_hide(json!({"id": 2, "domain": ""})), (false, false, false));
        assert_eq!(may_hide(json!({"id": 2, "domain": "https://b"})), (true, true, false));
        assert_eq!(may_hide(json!({"id": 2, "cert_id": []})), (true, true, true));
        assert_eq!(may_hide(json!("b.example")), (true, true, true));
    }

    #[test]
    fn json_is_kept_only_in_api_objects() {
        let json = json!([{"id": 10, "domain": "a.example", "remark": "x"}]);
        let list: List<ApiObject<Site>> = List::of(&json).unwrap();
        assert_eq!((list.items[0].known.id, &list.items[0].json["remark"]), (10, &json!("x")));
    }
}
