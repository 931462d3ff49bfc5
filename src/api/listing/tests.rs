//! Tests that a response is the same however it arrives, and the limits.

use std::sync::{Arc, LazyLock};

use fastrand::Rng;
use futures_util::FutureExt as _;
use serde_json::json;

use super::super::list::List;
use super::super::response::Response;
use super::super::wire::{ApiObject, Listed, Record, Site};
use super::*;
use crate::secret::WITHHELD;

const CHUNKS: [usize; 6] = [1, 2, 3, 7, 64, 1 << 20];

/// Pieces of JSON, of which random texts are made.
const NAMES: [&str; 13] = [
    "id", "domain", "cert_id", "cname", "name", "sites", "certs", "data", "list", "total", "error", "ok", "x",
];
const SCALARS: [&str; 17] = [
    "1",
    "2.0",
    "-3",
    "18446744073709551615",
    "1e3",
    "true",
    "false",
    "null",
    "\"a.example\"",
    "\"b.example\"",
    "\"[{,\\\"\\\\\"",
    "\"\\ud83d\\ude00\"",
    "\"\u{20ac}\u{1f600}\"",
    "\"key-0123456789\"",
    "\"\"",
    "\"5\"",
    "\"a.example,b.example\"",
];

static REDACTOR: LazyLock<Arc<Redactor>> = LazyLock::new(|| {
    let mut redactor = Redactor::default();
    redactor.hide("key-0123456789");
    Arc::new(redactor)
});

/// A random JSON text without a repeated field.
fn random_text(rng: &mut Rng, depth: usize) -> String {
    let space = [" ", "\n", "", "", "", ""][rng.usize(..6)];
    let text = match rng.usize(..if depth == 0 { 2 } else { 8 }) {
        0 | 1 => SCALARS[rng.usize(..SCALARS.len())].to_owned(),
        2 | 3 => {
            let elements: Vec<String> = (0..rng.usize(..4)).map(|_| random_text(rng, depth - 1)).collect();
            format!("[{space}{}]", elements.join(&format!(",{space}")))
        }
        kind => {
            let mut names = NAMES;
            rng.shuffle(&mut names);
            let mut fields: Vec<String> = Vec::new();
            if kind == 4 {
                fields.push(format!("\"id\":{},\"domain\":\"{}.example\"", rng.u8(..3), rng.alphabetic()));
            }
            let others = names.iter().filter(|name| kind != 4 || !["id", "domain"].contains(*name));
            fields.extend(
                others
                    .take(rng.usize(..4))
                    .map(|name| format!("\"{name}\"{space}:{}", random_text(rng, depth - 1))),
            );
            format!("{{{}}}", fields.join(","))
        }
    };
    format!("{space}{text}{space}")
}

/// A text in which a few bytes are removed, repeated or changed.
fn garbled(text: &str, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..rng.usize(1..3) {
        let at = rng.usize(..=bytes.len());
        match rng.usize(..3) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, *rng.choice(b"{}[],:\"\\\xff\xc3\xe2 1").unwrap()),
            _ if at < bytes.len() => drop(bytes.remove(at)),
            _ => {}
        }
    }
    bytes
}

fn read<T: Element>(text: impl AsRef<[u8]>, chunk: usize) -> Result<(Value, Vec<Items<T>>), JsonError> {
    filled(0, text.as_ref(), chunk)
}

/// Reads a text with a reader that has kept this many bytes before.
fn filled<T: Element>(bytes: usize, text: &[u8], chunk: usize) -> Result<(Value, Vec<Items<T>>), JsonError> {
    let mut chunks = text.chunks(chunk).map(Bytes::copy_from_slice);
    let mut reader = Reader::new(async || chunks.next(), &REDACTOR);
    reader.bytes = bytes;
    let outline = reader.read().now_or_never().unwrap()?;
    Ok((outline, reader.arrays))
}

fn show_list(bytes: &[u8], chunk: usize) -> String {
    match Response::<Site>::of(200, bytes.chunks(chunk), Arc::clone(&REDACTOR)).list() {
        Ok(list) => format!("{list:?}"),
        Err(error) => error.to_string(),
    }
}

/// The outline of a whole value, and its arrays.
fn outline(value: &Value, arrays: &mut Vec<Items<Site>>) -> Value {
    match value {
        Value::Array(elements) if !elements.is_empty() => {
            let mut list = Items { items: Vec::new(), unreadable: Vec::new() };
            for text in elements.iter().map(Value::to_string) {
                let fields = serde_json::from_str(&text).map_err(|_| Unreadable::default());
                match fields.and_then(|fields| Site::from_fields(fields, &text, &REDACTOR).0) {
                    Ok(site) => list.items.push(site),
                    Err(unreadable) => list.unreadable.push(unreadable),
                }
            }
            arrays.push(list);
            json!([arrays.len() - 1, elements.len(), elements[0]])
        }
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), outline(value, arrays))).collect()
        }
        other => other.clone(),
    }
}

#[test]
fn lists_are_read_alike_in_any_chunks() {
    let mut rng = Rng::with_seed(17);
    let mut lists = 0;
    for _ in 0..3_000 {
        let text = random_text(&mut rng, 4);
        let value: Value = serde_json::from_str(&text).unwrap();
        let mut arrays = Vec::new();
        let mut outline = outline(&value, &mut arrays);
        REDACTOR.clean_json(&mut outline);
        let expected = List::new(&outline, arrays).filter(|_| value.get("ok") != Some(&Value::Bool(false)));
        let shown = show_list(text.as_bytes(), 1 + rng.usize(..9));
        match expected {
            Some(list) => {
                lists += usize::from(!list.items.is_empty());
                assert_eq!(shown, format!("{list:?}"), "{text}");
            }
            None => assert!(shown.starts_with("the service "), "{shown}: {text}"),
        }
        assert_eq!(parse(&text), Ok(value), "{text}");
        let bytes = garbled(&text, &mut rng);
        let whole = show_list(&bytes, bytes.len().max(1));
        let text = String::from_utf8_lossy(&bytes);
        for chunk in 1..4 {
            assert_eq!(show_list(&bytes, chunk), whole, "{chunk}: {text}");
        }
    }
    assert!(lists > 50, "{lists}");
}

fn parse(text: &str) -> Result<Value, JsonError> {
    read::<Value>(text, usize::MAX).map(|(json, _)| json)
}

/// The outline, and of each array the IDs and the number of unreadable elements.
#[track_caller]
fn read_alike(text: &str) -> (Value, Vec<(Vec<u64>, usize)>) {
    let results = CHUNKS.map(|chunk| {
        let (outline, lists) =
            read::<Site>(text, chunk).unwrap_or_else(|error| panic!("{text} in {chunk}: {error}"));
        let ids = |list: &Items<Site>| {
            (list.items.iter().map(|site| site.id).collect::<Vec<_>>(), list.unreadable.len())
        };
        (outline, lists.iter().map(ids).collect::<Vec<_>>())
    });
    let [first, others @ ..] = results;
    assert!(others.iter().all(|other| *other == first), "{text}");
    first
}

#[test]
fn outline_keeps_first_elements() {
    let site = r#"{"id":5,"domain":"a.example","x":[1,{"y":"\"]},"}],"cert_id":null}"#;
    let large = format!(r#"{{"id":6,"domain":"b.example","x":"{}"}}"#, "y".repeat(MAX_FIRST_BYTES));
    let text = format!(
        "\u{feff} {{ \"sites\" : [ {large} , {site} ] , \"errors\":[{{\"detail\":\"x\"}},1], \"x\" : [ ] }} "
    );
    let outline = json!({"sites": [0, 2, {}], "errors": [1, 2, {"detail": "x"}], "x": []});
    assert_eq!(read_alike(&text), (outline, vec![(vec![6, 5], 0), (vec![], 2), (vec![], 0)]));
    for (text, value) in [("null", json!(null)), ("12", json!(12)), (r#" "[{" "#, json!("[{"))] {
        assert_eq!(read_alike(text), (value, vec![]));
    }
}

#[test]
fn unreadable_elements_hide_no_others() {
    for element in [
        "5",
        "-1.5e3",
        r#""x""#,
        "null",
        "[[{}]]",
        r#"[1,"b.example"]"#,
        "{}",
        r#"{"id":"x","domain":"b.example"}"#,
        r#"{"id":1,"domain":"b.example","id":1}"#,
        r#"{"id":1,"domain":"b.example","cert_id":5,"cert_id":6}"#,
        r#"{"id":1,"domain":"\ud800"}"#,
    ] {
        let text = format!(r#"[{element},{{"id":7,"domain":"a.example"}},{element}]"#);
        assert_eq!(read_alike(&text).1, [(vec![7], 2)], "{text}");
    }
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let deep = format!(r#"[{{"id":1,"domain":"b.example","x":{deep}}}]"#);
    assert_eq!(read::<Site>(deep, 4096).unwrap().1[0].items.len(), 1);
}

#[test]
fn other_texts_are_no_json() {
    for text in [
        "",
        "\u{feff}",
        "[",
        "[1",
        "[1,",
        "[,]",
        "[1,]",
        "[1}",
        "{\"a\":[1]",
        "{\"a\"}",
        "{\"a\":}",
        "{,}",
        "{\"a\":1,}",
        "{]",
        "<html>",
        "[] []",
        "[]]",
        "tru",
        "truex",
        "\"x",
        "{\"a\":[tru]}",
        "{\"a\":[{\"b\":1]}",
        "[1 2]",
        "{\"a\" 1}",
        "01",
        "\"\u{0}\"",
        "[\u{b}]",
    ] {
        for chunk in CHUNKS {
            assert_eq!(read::<Site>(text, chunk).err(), Some(JsonError::Syntax), "{text} in {chunk}");
        }
    }
}

/// Programs differ in which value of a repeated field they take.
#[test]
fn contradictory_responses_are_not_used() {
    for text in [
        r#"{"total":9,"sites":[],"total":0}"#,
        r#"{"data":{"sites":[1],"x":{},"\u0073ites":[1]}}"#,
        r#"{"sites":[],"sites":null}"#,
    ] {
        assert_eq!(parse(text), Err(JsonError::Ambiguous), "{text}");
    }
    assert_eq!(parse(r#"{"total":1,"total":1}"#), Ok(json!({"total": 1})));
}

#[test]
fn memory_is_limited() {
    let repeat =
        |element: &str, number: usize| format!("[{}{element}]", format!("{element},").repeat(number - 1));
    // 400 elements of a thousand small objects are too much: 1.5 MB of text.
    let small_objects = repeat(r#"{"a":0}"#, 1000);
    let site = format!(r#"{{"id":1,"domain":"a.example","x":{small_objects}}}"#);
    let nearly = MAX_BYTES / 100 * 99;
    let too_large = Some(JsonError::TooLarge);
    let sites = filled::<ApiObject<Site>>(nearly, repeat(&site, 4).as_bytes(), 16 << 10);
    let values = filled::<Value>(nearly, repeat(&small_objects, 4).as_bytes(), 16 << 10);
    let numbers = filled::<Site>(MAX_BYTES - 3000, repeat("7", 100).as_bytes(), 16 << 10);
    assert_eq!([sites.err(), values.err(), numbers.err()], [too_large.clone(), too_large.clone(), too_large]);
    let element = |bytes| format!(r#"[{{"id":1,"domain":"a.example","x":"{}"}}]"#, "y".repeat(bytes));
    let outline = format!(r#"{{"x":"{}","sites":[]}}"#, "y".repeat(MAX_BYTES / OUTLINE_FACTOR));
    for chunk in [16 << 10, usize::MAX] {
        assert!(read::<Site>(element(MAX_ELEMENT_BYTES - 100), chunk).is_ok());
        assert_eq!(read::<Site>(element(MAX_ELEMENT_BYTES), chunk).err(), Some(JsonError::TooLarge));
        assert_eq!(read::<Site>(&outline, chunk).err(), Some(JsonError::TooLarge));
        let deep = r#"{"a":"#.repeat(MAX_DEPTH + 1);
        assert_eq!(read::<Site>(&deep, chunk).err(), Some(JsonError::TooLarge));
    }
}

#[test]
fn every_domain_of_a_text_counts() {
    // The second name is too long to be kept in place.
    for (name, least) in [("a,", size_of::<Domain>()), ("a-name-on-the-heap.example,", 96)] {
        let text = format!(r#"{{"id":1,"domain":"{}"}}"#, name.repeat(1000));
        let (record, bytes) =
            Record::from_fields(serde_json::from_str(&text).unwrap(), &text, &Redactor::default());
        assert_eq!(record.unwrap().domains.len(), 1000);
        assert!(bytes > 1000 * least, "{bytes}");
    }
}

#[test]
fn million_elements_can_be_listed() {
    fn bytes<T: Listed>(text: &str) -> usize {
        let (element, bytes) =
            T::from_fields(serde_json::from_str(text).unwrap(), text, &Redactor::default());
        assert!(element.is_ok());
        size_of::<T>() + bytes
    }
    let text = r#"{"id":1042,"domain":"shop.a-long-name.example","name":"shop.a-long-name.example","type":"upload",
        "cert_id":1042,"cname":"c1042.edge.example.net","enabled":true,"config_synced":true}"#;
    for bytes in [bytes::<Record>(text), bytes::<Site>(text)] {
        assert!(bytes * 1_000_000 < MAX_BYTES, "{bytes}");
    }
}

#[test]
fn secrets_are_withheld() {
    let text = r#"[{"id":1,"domain":"a.example","disabled_reason":"bad \u006bey-0123456789"}]"#;
    let (_, lists) = read::<Site>(text, 7).unwrap();
    assert_eq!(lists[0].items[0].disabled_reason.as_deref(), Some(WITHHELD));
    let (_, lists) = read::<Record>(r#"[{"id":1,"domain":"a key-0123456789"}]"#, 7).unwrap();
    assert!(lists[0].items[0].domains.is_empty(), "{:?}", lists[0].items[0]);
}
