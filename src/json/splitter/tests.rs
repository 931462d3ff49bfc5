//! Tests where arrays and elements begin and end, and what is left in the outline.

use super::*;
use crate::scan_fields;
use serde_json::{Value, json};

/// The elements with the numbers of their arrays, the outline, and the paths of the arrays.
type Split = (Vec<(usize, String)>, String, Vec<Vec<String>>);

impl Visitor for Vec<(usize, String)> {
    fn read_first(&mut self, array: usize, text: &str, max_depth: usize) -> Result<Option<usize>, JsonError> {
        let end = scan_fields(text, &[], max_depth, &mut |_, _| {});
        self.extend(end.map(|end| (array, text[..end].trim().to_owned())));
        Ok(end)
    }

    fn read(&mut self, array: usize, element: Element<'_>) -> Result<(), JsonError> {
        let text = if let Element::Text(text) = element { text } else { "too large" };
        self.push((array, text.trim().to_owned()));
        Ok(())
    }
}

/// Splits a text that arrives in chunks of this many characters.
fn split(text: &str, chunk: usize) -> Result<Split, JsonError> {
    let (mut splitter, mut elements) = (Splitter::default(), Vec::new());
    let characters: Vec<char> = text.chars().collect();
    for piece in characters.chunks(chunk) {
        splitter.push(&piece.iter().collect::<String>(), &mut elements)?;
    }
    let (outline, paths) = splitter.end();
    Ok((elements, outline, paths))
}

#[test]
fn elements_are_found_in_any_chunks() {
    let strings = r#"["]", "\"],[\\", "a,b" , "\\\\\"]"]"#;
    let rows = [
        ("[]", vec![], vec![vec![]]),
        ("[ \n]", vec![], vec![vec![]]),
        ("[1]", vec![(0, "1")], vec![vec![]]),
        (
            r#" [ {"a":[1,2]} , [ ] ,"x"] "#,
            vec![(0, r#"{"a":[1,2]}"#), (0, "[ ]"), (0, r#""x""#)],
            vec![vec![]],
        ),
        (
            strings,
            vec![(0, r#""]""#), (0, r#""\"],[\\""#), (0, r#""a,b""#), (0, r#""\\\\\"]""#)],
            vec![vec![]],
        ),
        (
            r#"{"a":"[","b":[1],"c":{"d":[],"e":{"f\u0041":[2,3]}},"g":[4]}"#,
            vec![(0, "1"), (2, "2"), (2, "3"), (3, "4")],
            vec![vec!["b"], vec!["c", "d"], vec!["c", "e", "fA"], vec!["g"]],
        ),
        ("[1,]", vec![(0, "1"), (0, "")], vec![vec![]]),
        ("[,1]", vec![(0, ""), (0, "1")], vec![vec![]]),
        ("[1", vec![], vec![vec![]]),
        ("[{\"a\":[}", vec![], vec![vec![]]),
        ("\u{feff}[\"\u{e9}\"]", vec![(0, "\"\u{e9}\"")], vec![vec![]]),
        ("{}", vec![], vec![]),
        ("<html>", vec![], vec![]),
    ];
    for (text, expected, paths) in rows {
        let expected: Vec<_> = expected.into_iter().map(|(array, text)| (array, text.to_owned())).collect();
        for chunk in [1, 2, 3, 1000] {
            let (elements, outline, found) = split(text, chunk).unwrap();
            assert_eq!(
                (&elements, &found),
                (
                    &expected,
                    &paths
                        .iter()
                        .map(|path| path.iter().map(|name: &&str| (*name).to_owned()).collect())
                        .collect()
                ),
                "{text} {chunk}"
            );
            assert_eq!(outline, text.replace("[ \n]", "[]"), "{chunk}");
        }
    }
}

#[test]
fn outline_has_the_first_elements() {
    let sites: Vec<Value> = (0..250).map(|id| json!({"id": id, "x": ["]"]})).collect();
    let text = json!({"data": {"sites": sites, "total": 250}, "ok": true}).to_string();
    let (elements, outline, paths) = split(&text, 7).unwrap();
    let elements: Vec<Value> = elements.iter().map(|(_, text)| serde_json::from_str(text).unwrap()).collect();
    assert_eq!((&elements, paths), (&sites, vec![vec!["data".to_owned(), "sites".to_owned()]]));
    let further = vec![json!({}); OUTLINE_ELEMENTS - WHOLE_ELEMENTS];
    let kept = [&sites[..WHOLE_ELEMENTS], &further].concat();
    let expected = json!({"data": {"sites": kept, "total": 250}, "ok": true});
    assert_eq!(serde_json::from_str::<Value>(&outline).unwrap(), expected);
}

#[test]
fn large_elements_are_not_in_the_outline() {
    let (large, too_large) = ("x".repeat(MAX_OUTLINE_ELEMENT_BYTES), "x".repeat(MAX_ELEMENT_BYTES));
    let pieces = ["[1,\"", &large, "\", {\"a\":[\"", &large, "\"]},{\"a\":[\"", &too_large, "\"]},2]"];
    let (mut splitter, mut elements) = (Splitter::default(), Vec::new());
    for piece in pieces {
        splitter.push(piece, &mut elements).unwrap();
    }
    let sizes: Vec<usize> = elements.iter().map(|(_, text)| text.len()).collect();
    assert_eq!(sizes, [1, large.len() + 2, large.len() + 10, "too large".len(), 1]);
    assert_eq!(splitter.end().0, format!("[1,null,{{}},{TOO_LARGE},2]"));
}

#[test]
fn depth_and_sizes_are_limited() {
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), (r#"[{"a":"#, "}]"), (r#"{"a":[{"a":"#, "}]}")] {
        let depth = MAX_DEPTH / open.matches(['[', '{']).count();
        let nested = |depth| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        assert!(split(&nested(depth), 1000).is_ok(), "{open}");
        for depth in [depth + 1, 10_000] {
            assert_eq!(split(&nested(depth), 1000).unwrap_err(), JsonError::TooDeep, "{open} {depth}");
        }
    }
    let text = format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_OUTLINE_BYTES));
    assert_eq!(split(&text, 1 << 20).unwrap_err(), JsonError::TooLarge("32 MiB"));
    let arrays =
        |number: usize| (0..number).map(|name| format!("\"{name}\":[]")).collect::<Vec<_>>().join(",");
    assert!(split(&arrays(MAX_ARRAYS), 1000).is_ok());
    assert_eq!(split(&arrays(MAX_ARRAYS + 1), 1000).unwrap_err(), JsonError::TooLarge("1,000 lists"));
}
