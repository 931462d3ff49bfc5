//! Tests the limits, and that the result within them equals that of `serde_json`.

use super::value::{MAX_ELEMENTS, OUTLINE_ELEMENTS};
use super::*;
use serde_json::json;

#[test]
fn value_equals_that_of_serde_json() {
    for text in [
        r#"{"a":[1,-1,1.5,"x\n\u00e9",true,null,{"b":{}}],"c":"","d":[[]],"e":18446744073709551615}"#,
        "[]",
        " null ",
        "\"x\"",
    ] {
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(parse(text), Ok(expected.clone()), "{text}");
        assert_eq!(parse(&format!("\u{feff}{text}")), Ok(expected.clone()), "a byte-order mark is skipped");
        assert_eq!(outline(text), Ok(expected), "{text}");
    }
    for text in ["", "{", "[1,]", "{} {}", "\u{feff}", "\u{feff}\u{feff}{}", "1e999", "\"\u{0}\"", "<html>"] {
        assert_eq!(parse(text), Err(JsonError::Syntax), "{text}");
        assert_eq!(outline(text), Err(JsonError::Syntax), "{text}");
    }
}

#[test]
fn contradictory_object_is_replaced() {
    let message = |name: &str| JsonError::Ambiguous(name.into()).to_string();
    for (text, expected) in [
        (r#"[{"id":1,"id":2},{"id":3}]"#, json!([message("id"), {"id": 3}])),
        (r#"[{"id":1,"id":1}]"#, json!([{"id": 1}])),
        (r#"[{"id":1,"\u0069d":2}]"#, json!([message("id")])),
        (r#"{"site":{"cert_id":5,"x":[],"cert_id":"5"}}"#, json!({"site": message("cert_id")})),
        (r#"{"site":{"a":{"b":1,"b":null}}}"#, json!({"site": {"a": message("b")}})),
        (r#"{"data":{"sites":[],"sites":[]}}"#, json!({"data": message("sites")})),
    ] {
        assert_eq!(parse(text), Ok(expected.clone()), "{text}");
        assert_eq!(outline(text), Ok(expected), "{text}");
    }
    assert_eq!(parse(r#"{"ok":false,"ok":true}"#), Err(JsonError::Ambiguous("ok".into())));
}

#[test]
fn nesting_is_limited() {
    let nested = |depth: usize, open: &str, close: &str| open.repeat(depth) + "1" + &close.repeat(depth);
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), (r#"[{"a":"#, "}]")] {
        let depth = MAX_DEPTH / open.matches(['[', '{']).count();
        assert!(parse(&nested(depth, open, close)).is_ok());
        for depth in [depth + 1, 100_000] {
            assert_eq!(parse(&nested(depth, open, close)), Err(JsonError::TooDeep), "{open} {depth}");
        }
        assert_eq!(parse(&open.repeat(100_000)), Err(JsonError::TooDeep));
    }
}

#[test]
fn memory_is_limited() {
    let too_large = |parsed: Result<Value, JsonError>| parsed == Err(JsonError::TooLarge("32 MiB of values"));
    for element in ["{}", r#"{"id":1}"#] {
        let array = |length| format!("[{}1]", format!("{element},").repeat(length));
        assert!(too_large(parse(&array(600_000))), "{element}");
        assert!(too_large(outline(&format!("[{}]", array(600_000)))), "{element}");
        let wrapped = |length| outline(&format!(r#"{{"a":{}}}"#, array(length)));
        assert!(wrapped(MAX_ELEMENTS - 1).is_ok(), "{element}");
        assert_eq!(wrapped(MAX_ELEMENTS), Err(JsonError::TooLarge("100,000 elements")), "{element}");
    }
    let fields: Vec<String> = (0..300_000).map(|number| format!("\"{number}\":0")).collect();
    assert!(too_large(outline(&format!("{{{}}}", fields.join(",")))));
}

#[test]
fn elements_are_visited_at_their_path() {
    let list = |length: u64| (0..length).map(|id| json!({"id": id})).collect::<Value>();
    for (json, path) in [
        (list(250), &[][..]),
        (json!({"sites": list(250), "total": 250}), &["sites"]),
        (json!({"a": {"sites": [1]}, "data": {"x": list(9), "sites": list(250)}}), &["data", "sites"]),
    ] {
        let text = json.to_string();
        let outline = outline(&text).unwrap();
        let target = path.iter().fold(&outline, |value, name| &value[name]);
        assert_eq!(target.as_array().unwrap().len(), OUTLINE_ELEMENTS);
        assert_eq!(path_of(&outline, target).unwrap(), path);
        let path: Vec<String> = path.iter().map(|name| (*name).to_owned()).collect();
        let mut elements = Vec::new();
        for_each_element(&text, &path, &mut |element, _| {
            elements.push(element);
            Ok(())
        })
        .unwrap();
        assert_eq!(Value::Array(elements), list(250));
        let too_many = || Err(JsonError::TooLarge("1 element"));
        assert_eq!(for_each_element(&text, &path, &mut |_, _| too_many()), too_many());
    }
}
