//! Lists of sites and records. An element that cannot be read does not hide the others.

use serde_json::Value;

use super::envelope::{RECORD_LIST_KEYS, SITE_LIST_KEYS, find_list};
use super::wire::{FromJson, Record, Site, cert_id};

/// The elements of a list.
#[derive(Debug)]
pub(crate) struct List<T> {
    pub(crate) items: Vec<T>,
    /// Records that unreadable elements are bound to.
    pub(crate) unreadable: Vec<u64>,
    /// Why elements may be missing; empty for a complete list.
    pub(super) warnings: Vec<String>,
}

impl<T: FromJson<Known = Record>> List<T> {
    /// The response of `GET /api/certs`.
    pub(super) fn of_records(json: &Value) -> Option<Self> {
        Self::from_json(json, "certificates", &RECORD_LIST_KEYS)
    }
}

impl<T: FromJson<Known = Site>> List<T> {
    /// The response of `GET /api/me/sites`.
    pub(super) fn of_sites(json: &Value) -> Option<Self> {
        Self::from_json(json, "sites", &SITE_LIST_KEYS)
    }
}

impl<T: FromJson> List<T> {
    /// Leaves out unreadable elements with a warning; `None` if no element can be read.
    fn from_json(json: &Value, noun: &str, keys: &[&str]) -> Option<Self> {
        let elements = find_list(json, keys)?;
        let (mut items, mut unread) = (Vec::new(), Vec::new());
        for element in elements {
            match T::from_json(element) {
                Some(item) => items.push(item),
                None => unread.push(element),
            }
        }
        if items.is_empty() && !elements.is_empty() {
            return None;
        }
        let mut warnings = Vec::new();
        let listed = elements.len();
        if !unread.is_empty() {
            let unread = unread.len();
            warnings.push(format!(
                "cannot read {unread} of the {listed} {noun} that the service lists; they are ignored"
            ));
        }
        if let Some(total) = json.get("total").and_then(Value::as_u64).filter(|total| *total > listed as u64)
        {
            warnings
                .push(format!("the service lists only {listed} of {total} {noun}; the others are ignored"));
        }
        let unreadable = unread.into_iter().filter_map(cert_id).collect();
        Some(Self { items, unreadable, warnings })
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::ApiObject;
    use super::*;
    use serde_json::json;

    #[test]
    fn unreadable_elements_are_reported() {
        let json = json!({"sites": [{"id": 1, "domain": "a.example"}, {"cert_id": 7}], "total": 9});
        let list: List<Site> = List::of_sites(&json).unwrap();
        assert_eq!((list.items.len(), list.unreadable, list.warnings.len()), (1, vec![7], 2));
        for json in [json!([1, 2]), json!([{"name": "without id"}])] {
            assert!(List::<Record>::of_records(&json).is_none(), "{json}");
        }
    }

    #[test]
    fn json_is_kept_only_in_api_objects() {
        let json = json!([{"id": 10, "domain": "a.example", "remark": "x"}]);
        let list: List<ApiObject<Site>> = List::of_sites(&json).unwrap();
        assert_eq!((list.items[0].known.id, &list.items[0].json["remark"]), (10, &json!("x")));
    }
}
