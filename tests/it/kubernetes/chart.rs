//! Renders the Helm chart: Helm's templates are Go's, with a few functions more.

use std::collections::HashMap;

use gtmpl::{Context, FuncError, Template, Value as Item};
use serde_json::{Value, json};

use super::manifests::validate;
use crate::readme::{read, root};

const CHART: &str = "hooks/kubernetes/chart";

/// The chart for a release in the namespace `default`. `values` are those that differ from the defaults, as YAML.
pub(super) fn render(values: &str) -> String {
    let mut merged = parse(&read(&format!("{CHART}/values.yaml")));
    for (name, value) in parse(values).as_object().unwrap() {
        assert!(merged[name] != Value::Null, "the chart has no value {name}");
        merged[name] = value.clone();
    }
    let data = json!({"Values": merged, "Release": {"Name": "edgecert", "Namespace": "default"}});
    let mut templates: Vec<_> = std::fs::read_dir(root().join(CHART).join("templates")).unwrap().collect();
    templates.sort_by_key(|entry| entry.as_ref().unwrap().file_name());
    let render = |entry: std::io::Result<std::fs::DirEntry>| {
        let mut template = Template::default();
        template.add_func("toJson", |items| Ok(Item::from(json(&items[0]).to_string())));
        template.add_func("list", |items| Ok(Item::Array(items.to_vec())));
        template.add_func("nindent", nindent);
        let path = entry.unwrap().path();
        template.parse(std::fs::read_to_string(&path).unwrap()).unwrap();
        template
            .render(&Context::from(item(&data)))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    templates.into_iter().map(render).collect::<Vec<_>>().join("\n---\n")
}

/// The first object of a YAML text that is no Kubernetes object.
fn parse(yaml: &str) -> Value {
    let object =
        format!("apiVersion: kustomize.config.k8s.io/v1beta1\nvalues:\n  {}", yaml.replace('\n', "\n  "));
    validate(&object).unwrap().remove(0)["values"].take()
}

/// Indents a text on lines of its own.
fn nindent(items: &[Item]) -> Result<Item, FuncError> {
    let [Item::Number(spaces), text] = items else {
        return Err(FuncError::ExactlyXArgs("nindent".into(), 2));
    };
    let line_start = format!("\n{}", " ".repeat(usize::try_from(spaces.as_u64().unwrap()).unwrap()));
    Ok(Item::from(format!("{line_start}{}", text.to_string().trim_end().replace('\n', &line_start))))
}

fn item(value: &Value) -> Item {
    match value {
        Value::Null => Item::Nil,
        Value::Bool(value) => Item::Bool(*value),
        Value::Number(number) => Item::from(number.as_i64().unwrap()),
        Value::String(text) => Item::from(text.as_str()),
        Value::Array(values) => Item::Array(values.iter().map(item).collect()),
        Value::Object(members) => Item::Map(
            members.iter().map(|(name, value)| (name.clone(), item(value))).collect::<HashMap<_, _>>(),
        ),
    }
}

fn json(item: &Item) -> Value {
    match item {
        Item::Bool(value) => json!(value),
        Item::Number(number) => json!(number.as_i64()),
        Item::String(text) => json!(text),
        Item::Array(items) => items.iter().map(json).collect(),
        Item::Map(members) | Item::Object(members) => {
            Value::Object(members.iter().map(|(name, item)| (name.clone(), json(item))).collect())
        }
        _ => Value::Null,
    }
}
