//! Tests the limits, and that the result within them equals that of `serde_json`.

use edgecert_json::MAX_DEPTH;

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
    }
    for text in ["", "{", "[1,]", "{} {}", "\u{feff}", "\u{feff}\u{feff}{}", "1e999", "\"\u{0}\"", "<html>"] {
        assert_eq!(parse(text), Err(JsonError::Syntax), "{text}");
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
        assert_eq!(parse(text), Ok(expected), "{text}");
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
    let too_large = Err(JsonError::TooLarge("128 MiB of values"));
    for element in ["{}", r#"{"id":1}"#] {
        let array = |length| format!("[{}1]", format!("{element},").repeat(length));
        assert_eq!(parse(&array(2_400_000)), too_large, "{element}");
        assert_eq!(parse(&format!("[{}]", array(2_400_000))), too_large, "{element}");
    }
    let fields: Vec<String> = (0..900_000).map(|number| format!("\"{number}\":0")).collect();
    assert_eq!(parse(&format!("{{{}}}", fields.join(","))), too_large);
}

#[test]
fn path_leads_to_a_value() {
    for (json, path) in [
        (json!([]), &[][..]),
        (json!({"sites": [1], "total": 1}), &["sites"]),
        (json!({"a": {"sites": [1]}, "data": {"x": [1], "sites": [1]}}), &["data", "sites"]),
    ] {
        let target = path.iter().fold(&json, |value, name| &value[name]);
        assert_eq!(path_of(&json, target).unwrap(), path);
    }
}
