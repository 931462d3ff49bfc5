//! Renders the Helm chart: Helm's templates are Go's, with a few functions more.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use gtmpl::{Context, FuncError, Template, Value as Item};
use serde_json::{Value, json};

use super::manifests::validate;
use crate::harness::{PYTHON, require_python_module};
use crate::readme::{read, root};

const CHART: &str = "hooks/kubernetes/chart";

/// Compares values with the schema, and prints what does not fit, as Helm does before it renders.
const CHECK_VALUES: &str = r#"
import json, sys
from jsonschema import Draft7Validator
schema, values = json.load(sys.stdin)
Draft7Validator.check_schema(schema)
for error in Draft7Validator(schema).iter_errors(values):
    print(error.json_path, error.message)
"#;

/// The values of the chart, with those in YAML in place of the defaults, and what Helm reports for them.
pub(super) fn values(yaml: &str) -> (Value, String) {
    let mut values = parse(&read(&format!("{CHART}/values.yaml")));
    values.as_object_mut().unwrap().extend(parse(yaml).as_object().unwrap().clone());
    let schema: Value = serde_json::from_str(&read(&format!("{CHART}/values.schema.json"))).unwrap();
    require_python_module("jsonschema", "python3-jsonschema");
    let mut command = Command::new(PYTHON);
    command.args(["-c", CHECK_VALUES]).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    serde_json::to_writer(process.stdin.take().unwrap(), &json!([schema, values])).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "the schema is valid");
    (values, String::from_utf8(output.stdout).unwrap())
}

/// The chart for a release in the namespace `default`. `values` are those that differ from the defaults, as YAML.
pub(super) fn render(values: &str) -> String {
    render_release("edgecert", values)
}

pub(super) fn render_release(name: &str, yaml: &str) -> String {
    let (values, errors) = values(yaml);
    assert_eq!(errors, "");
    let data = json!({"Values": values, "Release": {"Name": name, "Namespace": "default"}});
    let directory = root().join(CHART).join("templates");
    let mut files: Vec<_> = directory.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    // Only the helpers of other templates.
    let helpers = std::fs::read_to_string(files.remove(0)).unwrap();
    let render = |path: PathBuf| {
        let mut template = Template::default();
        template.add_func("toJson", |items| Ok(Item::from(json(&items[0]).to_string())));
        template.add_func("list", |items| Ok(Item::Array(items.to_vec())));
        template.add_func("nindent", nindent);
        template.add_func("trunc", trunc);
        template.add_func("trimSuffix", |items| {
            let [suffix, text] = items else { return Err(FuncError::ExactlyXArgs("trimSuffix".into(), 2)) };
            let (suffix, text) = (suffix.to_string(), text.to_string());
            Ok(Item::from(text.strip_suffix(&suffix).unwrap_or(&text)))
        });
        template.parse(format!("{helpers}{}", std::fs::read_to_string(&path).unwrap())).unwrap();
        template
            .render(&Context::from(item(&data)))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    files.into_iter().map(render).collect::<Vec<_>>().join("\n---\n")
}

/// The first object of a YAML text that is no Kubernetes object.
fn parse(yaml: &str) -> Value {
    let object =
        format!("apiVersion: kustomize.config.k8s.io/v1beta1\nvalues:\n  {}", yaml.replace('\n', "\n  "));
    validate(&object).unwrap().remove(0)["values"].take()
}

/// Cuts off what is longer than this number of characters.
fn trunc(items: &[Item]) -> Result<Item, FuncError> {
    let [Item::Number(length), text] = items else { return Err(FuncError::ExactlyXArgs("trunc".into(), 2)) };
    let length = usize::try_from(length.as_u64().unwrap()).unwrap();
    Ok(Item::from(text.to_string().chars().take(length).collect::<String>()))
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
