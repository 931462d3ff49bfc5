//! Tests that a list is the same however it arrives, and its limits.

use std::sync::LazyLock;

use fastrand::Rng;
use serde_json::Value;

use super::super::envelope::{ListKind, find_list};
use super::super::gap::Gap;
use super::super::json;
use super::super::wire::{ApiObject, ListedObject, Site};
use super::*;

/// Pieces of JSON, of which random texts are made.
const NAMES: [&str; 14] = [
    "id", "domain", "cert_id", "cname", "name", "sites", "certs", "data", "list", "total", "error", "ok",
    "x", "\\u0069d",
];
const SCALARS: [&str; 16] = [
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
    "\"key-0123456789\"",
    "\"\"",
    "\"5\"",
    "\"a.example,b.example\"",
];

/// A random JSON text; now and then with a fault.
fn random_text(rng: &mut Rng, depth: usize) -> String {
    let space = |rng: &mut Rng| [" ", "\n", "", "", "", ""][rng.usize(..6)];
    let text = match rng.usize(..if depth == 0 { 2 } else { 8 }) {
        0 | 1 => SCALARS[rng.usize(..SCALARS.len())].to_owned(),
        2 | 3 => {
            let elements: Vec<String> = (0..rng.usize(..4)).map(|_| random_text(rng, depth - 1)).collect();
            format!("[{}{}]", space(rng), elements.join(&format!(",{}", space(rng))))
        }
        4 => {
            let (id, domain) =
                (rng.choice(["1", "2", "\"3\""]).unwrap(), rng.choice(["a", "b", ""]).unwrap());
            let (name, value) = (rng.choice(NAMES).unwrap(), random_text(rng, depth - 1));
            format!(r#"{{"id":{id},"domain":"{domain}.example","{name}":{value}}}"#)
        }
        _ => {
            let fields: Vec<String> = (0..rng.usize(..4))
                .map(|_| {
                    format!(
                        "\"{}\"{}:{}",
                        NAMES[rng.usize(..NAMES.len())],
                        space(rng),
                        random_text(rng, depth - 1)
                    )
                })
                .collect();
            format!("{{{}}}", fields.join(","))
        }
    };
    format!("{}{text}{}", space(rng), space(rng))
}

/// A text in which a few bytes are removed, repeated or changed.
fn garbled(text: &str, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..rng.usize(1..3) {
        let at = rng.usize(..=bytes.len());
        match rng.usize(..3) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, *rng.choice(b"{}[],:\"\\\xff\xc3 1").unwrap()),
            _ if at < bytes.len() => drop(bytes.remove(at)),
            _ => {}
        }
    }
    bytes
}

static REDACTOR: LazyLock<Arc<Redactor>> = LazyLock::new(|| {
    let mut redactor = Redactor::default();
    redactor.hide("key-0123456789");
    Arc::new(redactor)
});

fn read<T: FromJson>(bytes: &[u8], chunk: usize) -> Result<List<T>, AttemptError> {
    List::read(bytes.chunks(chunk.max(1)), Arc::clone(&REDACTOR))
}

fn show<T: FromJson + std::fmt::Debug>(bytes: &[u8], chunk: usize) -> String {
    format!("{:?}", read::<T>(bytes, chunk))
}

/// An element has a field twice that is not needed: it is read only in a stream.
const AMBIGUOUS: &str = "ambiguous";

/// Whether an element that was replaced by a message has only fields twice that are not needed.
fn is_needlessly_ambiguous<T: ListedObject>(element: &Value) -> bool {
    let message = element.as_str().and_then(|text| text.strip_prefix("the field `"));
    let name = message.and_then(|message| message.split_once("` occurs twice")).map(|(name, _)| name);
    name.is_some_and(|name| !T::FIELDS.contains(&name))
}

/// Reads a whole text as a value and makes the list of that. `None` if they may differ.
fn reference<T: ListedObject + std::fmt::Debug>(bytes: &[u8]) -> Option<Result<String, String>> {
    let list = reference_list::<T>(bytes);
    (!matches!(&list, Err(error) if error == AMBIGUOUS)).then_some(list)
}

fn reference_list<T: ListedObject + std::fmt::Debug>(bytes: &[u8]) -> Result<String, String> {
    let text = String::from_utf8_lossy(bytes);
    let mut json = json::parse(&text).map_err(|error| error.to_string())?;
    if json.get("ok") == Some(&Value::Bool(false)) {
        return Err("ok:false".into());
    }
    let path = find_list(&json, T::KIND).and_then(|list| json::path_of(&json, list)).ok_or("no list")?;
    REDACTOR.clean_json(&mut json);
    let list = path.iter().fold(&json, |value, name| &value[name]);
    let mut elements = list.is_array().then(Elements::<ApiObject<T>>::default);
    for element in list.as_array().into_iter().flatten() {
        if is_needlessly_ambiguous::<T>(element) {
            return Err(AMBIGUOUS.into());
        }
        let elements = elements.as_mut().unwrap();
        elements.add(Element::Text(&element.to_string()), &REDACTOR).unwrap();
    }
    let mut gaps = Gap::of_response(&json, elements.as_mut().map(Elements::count_distinct), T::KIND);
    let mut elements = elements.unwrap_or_default();
    if elements.are_unreadable() {
        return Err("unreadable".into());
    }
    let hides_bindings = !gaps.is_empty() || elements.hides_bindings;
    gaps.extend(elements.gap(T::KIND));
    let items = elements.items.into_iter().map(|item| item.known).collect();
    Ok(format!("{:?}", List::<T> { items, unreadable: elements.unreadable, gaps, hides_bindings }))
}

#[test]
fn lists_are_read_alike_in_any_chunks() {
    let mut rng = Rng::with_seed(17);
    let mut lists = 0;
    for _ in 0..10_000 {
        let text = random_text(&mut rng, 4);
        let bytes = if rng.u8(..3) == 0 { garbled(&text, &mut rng) } else { text.into_bytes() };
        let whole = show::<Site>(&bytes, bytes.len());
        let chunk = rng.usize(1..9);
        assert_eq!(show::<Site>(&bytes, chunk), whole, "{chunk}: {}", String::from_utf8_lossy(&bytes));
        let Some(expected) = reference::<Site>(&bytes) else { continue };
        let text = String::from_utf8_lossy(&bytes);
        match read::<Site>(&bytes, chunk) {
            Ok(list) => {
                lists += usize::from(!list.items.is_empty());
                assert_eq!(Ok(format!("{list:?}")), expected, "{text}");
            }
            Err(error) => assert!(expected.is_err(), "{error}: {expected:?}: {text}"),
        }
    }
    assert!(lists > 100, "{lists}");
}

#[test]
fn text_that_is_not_json_is_the_message() {
    let page = "<!doctype html><script>let routes = [\"/a\", b(1), function () {}];</script>";
    for chunk in [7, 1000] {
        let error = read::<Site>(page.as_bytes(), chunk).unwrap_err();
        let AttemptError::InvalidResponse { message, .. } = &error else { panic!("{error}") };
        assert!(message.starts_with("<!doctype html><script>let routes = ["), "{message}");
    }
}

#[test]
fn number_of_elements_is_limited() {
    let text = format!(r#"{{"data":{{"sites":[{}7]}}}}"#, "7,".repeat(MAX_ELEMENTS));
    let error = read::<Site>(text.as_bytes(), 16 << 10).unwrap_err();
    let AttemptError::ListTooLarge { kind: ListKind::Sites, limit } = error else { panic!("{error}") };
    assert_eq!(limit, "2,000,000 elements");
}

/// Programs differ in which value of a repeated field they take.
#[test]
fn contradictory_lists_are_not_used() {
    let site = r#"{"id":8,"domain":"a.example"}"#;
    for (text, field) in [
        (r#"{"total":9,"sites":[],"total":0}"#, Some("total")),
        (r#"{"ok":false,"sites":[],"ok":true}"#, Some("ok")),
        (r#"{"data":{"sites":[],"sites":[]}}"#, Some("sites")),
        (r#"{"sites":[],"sites":null}"#, Some("sites")),
        (r#"[{"id":8,"id":9,"domain":"a.example"}]"#, None),
        (r#"[{"id":8,"domain":"b.example","domain":"a.example"}]"#, None),
        (r#"[{"id":8,"domain":"a.example","cert_id":5,"cert_id":6}]"#, None),
    ] {
        let error = read::<Site>(text.as_bytes(), 7).unwrap_err().to_string();
        let message = field.map(|field| format!("the field `{field}` occurs twice with different values"));
        assert!(error.contains(&message.unwrap_or_default()), "{text}: {error}");
        // Beside another element, it is only a gap.
        if let Some(element) = text.strip_prefix('[') {
            let list = read::<Site>(format!("[{site},{element}").as_bytes(), 7).unwrap();
            let gaps: Vec<String> = list.gaps.iter().map(ToString::to_string).collect();
            assert_eq!(
                (list.items.len(), gaps),
                (1, vec!["the service's list of sites has 1 element that cannot be read".to_owned()])
            );
        }
    }
    let equal = r#"{"sites":[{"id":8,"id":8,"domain":"a.example","cert_id":null,"cert_id":null}],"total":1,"total":1}"#;
    assert_eq!(read::<Site>(equal.as_bytes(), 7).unwrap().items.len(), 1);
}
