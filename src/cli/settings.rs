//! Flags of settings, made from the list in `settings`. A flag has no default here: it would shadow the configuration
//! file.

use std::ffi::OsStr;
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, ValueHint};

use crate::settings::{
    BaseUrl, EdgeAddresses, Kind, Layer, ProxySetting, Reader, RecordName, SETTINGS, Setting, TrustAnchors,
    Value, Verify,
};

/// The flags of the settings that a command takes.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingArgs<S = All> {
    pub(crate) layer: Layer,
    subset: PhantomData<S>,
}

/// A choice of settings.
pub(crate) trait Subset {
    fn contains(setting: &Setting) -> bool;
}

/// Every setting, for commands that deploy.
#[derive(Clone, Debug, Default)]
pub(crate) struct All;

/// The settings of commands that call the service without deploying.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connection;

/// The settings of `status`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Local;

impl Subset for All {
    fn contains(_: &Setting) -> bool {
        true
    }
}

impl Subset for Connection {
    fn contains(setting: &Setting) -> bool {
        ["base_url", "api_key_file", "ca_file", "proxy", "timeout"].contains(&setting.name)
    }
}

impl Subset for Local {
    fn contains(setting: &Setting) -> bool {
        ["state_dir", "edge_address"].contains(&setting.name)
    }
}

impl<S: Subset> Args for SettingArgs<S> {
    fn augment_args(command: Command) -> Command {
        const HEADING: &str = "Settings (flag, variable or file)";
        let settings = SETTINGS.iter().filter(|setting| S::contains(setting));
        command.next_help_heading(HEADING).args(settings.map(arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<S: Subset> FromArgMatches for SettingArgs<S> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self { layer: Layer::read(&mut Matches(matches)), subset: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.layer = Layer::read(&mut Matches(matches)).or(std::mem::take(&mut self.layer));
        Ok(())
    }
}

/// Reads the flags that were given.
struct Matches<'a>(&'a ArgMatches);

impl Reader for Matches<'_> {
    fn read<T: Value>(&mut self, setting: &'static Setting) -> Option<T> {
        // A flag that the command does not take is an error to clap.
        self.0.try_get_one::<T>(setting.name).ok().flatten().cloned()
    }
}

fn arg(setting: &'static Setting) -> Arg {
    let arg = Arg::new(setting.name).long(setting.flag()).value_name(setting.value_name).help(help(setting));
    match setting.kind {
        Kind::Text => arg.value_parser(SettingParser::<RecordName>::NEW),
        Kind::Proxy => arg.value_parser(SettingParser::<ProxySetting>::NEW),
        Kind::Url => arg.value_parser(SettingParser::<BaseUrl>::NEW),
        Kind::EdgeAddresses => arg.value_parser(SettingParser::<EdgeAddresses>::NEW),
        Kind::Path => {
            let is_directory = setting.value_name == "DIR";
            let hint = if is_directory { ValueHint::DirPath } else { ValueHint::FilePath };
            arg.value_parser(SettingParser::<PathBuf>::NEW).value_hint(hint)
        }
        Kind::Seconds => arg.value_parser(SettingParser::<u64>::NEW).allow_negative_numbers(true),
        Kind::PositiveSeconds => {
            arg.value_parser(SettingParser::<NonZeroU64>::NEW).allow_negative_numbers(true)
        }
        Kind::Verify => arg.value_parser(SettingParser::<Verify>::NEW),
        Kind::TrustAnchors => {
            arg.value_parser(SettingParser::<TrustAnchors>::NEW).value_hint(ValueHint::FilePath)
        }
        Kind::Switch => arg
            .value_parser(SettingParser::<bool>::NEW)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("yes"),
    }
}

/// Parses the value of a setting as variables spell it.
#[derive(Clone)]
pub(super) struct SettingParser<T>(PhantomData<fn() -> T>);

impl<T> SettingParser<T> {
    pub(super) const NEW: Self = Self(PhantomData);
}

impl<T: Value> TypedValueParser for SettingParser<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        T::from_os(value).map_err(|error| {
            let flag = arg.map(ToString::to_string).unwrap_or_default();
            let reason = error.describe(&format!("'{}'", value.to_string_lossy()));
            let message = format!("invalid value for '{flag}': {reason}\n");
            clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue>>> {
        match T::KIND {
            Kind::Switch => Some(Box::new(["yes", "no"].into_iter().map(PossibleValue::new))),
            Kind::Verify => Some(Box::new(
                Verify::ALL.iter().map(|mode| PossibleValue::new(mode.to_string()).help(mode_help(*mode))),
            )),
            _ => None,
        }
    }
}

fn mode_help(mode: Verify) -> &'static str {
    match mode {
        Verify::Auto => "Verify; an unreachable edge is a warning",
        Verify::Require => "Verify; an unreachable edge is a failure",
        Verify::Off => "Do not verify",
    }
}

fn help(setting: &Setting) -> String {
    let default = setting.default.map(|default| format!(" [default: {default}]")).unwrap_or_default();
    format!("{}{default} [env: {}]", setting.help, setting.variable())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed<S: Subset>(arguments: &[&str]) -> Result<Layer, clap::Error> {
        let command = SettingArgs::<S>::augment_args(Command::new("x"));
        let matches = command.try_get_matches_from(["x"].iter().chain(arguments))?;
        Ok(SettingArgs::<S>::from_arg_matches(&matches)?.layer)
    }

    #[test]
    fn flags_become_layer() {
        let given =
            ["--timeout", "5", "--rebind", "--skip-unmatched=false", "--verify", "off", "--ca-file", "a"];
        let given = [&given[..], &["--verify-every", "60", "--trust-anchors", "system"]].concat();
        let expected = Layer {
            timeout: NonZeroU64::new(5),
            rebind: Some(true),
            skip_unmatched: Some(false),
            verify: Some(Verify::Off),
            ca_file: Some("a".into()),
            verify_every: Some(60),
            trust_anchors: Some(TrustAnchors::System),
            ..Layer::default()
        };
        assert_eq!(parsed::<All>(&given).unwrap(), expected);
        assert_eq!(parsed::<All>(&[]).unwrap(), Layer::default());
    }

    #[test]
    fn subset_takes_no_other_flag() {
        assert_eq!(parsed::<Connection>(&["--timeout", "5"]).unwrap().timeout, NonZeroU64::new(5));
        assert!(parsed::<Connection>(&["--wait", "5"]).is_err());
        assert!(parsed::<Local>(&["--edge-address", "a:1"]).unwrap().edge_address.is_some());
        assert!(parsed::<Local>(&["--timeout", "5"]).is_err());
    }
}
