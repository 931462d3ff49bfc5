//! The settings one by one, for `doctor`: one that cannot be used does not hide the others.

use std::path::PathBuf;

use super::{
    BaseUrl, Configuration, Error, Layer, LineageEntry, Settings, check_edge_address, default_state_dir, key,
};
use crate::env::{Env, NotUnicode};
use crate::secret::Secret;

/// What each setting is, or why it cannot be used.
pub(crate) struct Inspection {
    /// Settings besides base URL and API key that cannot be used.
    pub(crate) unusable: Vec<Error>,
    pub(crate) base_url: Result<BaseUrl, Error>,
    pub(crate) api_key: Result<Secret, Error>,
    /// `None`: nothing is remembered.
    pub(crate) state_dir: Option<PathBuf>,
    pub(crate) layers: Layers,
}

/// What was said where, for what is asked of one lineage.
pub(crate) struct Layers {
    /// Flags and environment, which beat what a lineage's entry says.
    strong: Layer,
    /// The configuration file.
    weak: Layer,
}

/// What `deploy` does with one lineage where that is not the same for all.
pub(crate) struct LineageOptions {
    pub(crate) rebind: bool,
    pub(crate) allow_untrusted: bool,
    pub(crate) skip_unmatched: bool,
}

impl Inspection {
    /// Looks at every setting.
    pub(crate) fn new(flags: &Layer, env: &Env, file: &Configuration) -> Self {
        let (environment, mut unusable) = usable(env);
        let api_key =
            key::find(flags, env, &environment, &file.layer).and_then(|key| key.ok_or(Error::NoApiKey));
        let strong = flags.clone().or(environment);
        let weak = file.layer.clone();
        let merged = strong.clone().or(weak.clone());
        let edge = merged.edge_address.as_deref().map(|text| check_edge_address(text, "edge address"));
        unusable.extend(edge.and_then(Result::err));
        Self {
            unusable,
            base_url: merged.base_url.as_deref().ok_or(Error::NoBaseUrl).and_then(str::parse),
            api_key,
            state_dir: merged.state_dir.or_else(|| default_state_dir(env)),
            layers: Layers { strong, weak },
        }
    }

    /// The settings of a run that reads the service. Without an API key it shows none; `None`: there is no base URL.
    pub(crate) fn settings(&self, env: &Env) -> Option<Settings> {
        let key = self.api_key.as_ref().map_or_else(|_| Secret::new(String::new()), Secret::clone);
        let merged = self.layers.strong.clone().or(self.layers.weak.clone());
        let base_url = self.base_url.as_ref().ok()?.clone();
        Some(Settings::complete(base_url, key, merged, env))
    }
}

impl Layers {
    /// What is left to `deploy` and `sync` for a lineage: what an earlier run was told, and what its entry says.
    pub(crate) fn lineage_options(&self, remembered: &Layer, entry: Option<&LineageEntry>) -> LineageOptions {
        let entry = entry.map(|entry| entry.layer.clone()).unwrap_or_default();
        let layer = self.strong.clone().or(remembered.clone()).or(entry).or(self.weak.clone());
        LineageOptions {
            rebind: layer.rebind.unwrap_or(false),
            allow_untrusted: layer.allow_untrusted.unwrap_or(false),
            skip_unmatched: layer.skip_unmatched.unwrap_or(false),
        }
    }
}

/// What the environment says, without the variables that cannot be used.
fn usable(env: &Env) -> (Layer, Vec<Error>) {
    let mut errors = Vec::new();
    let mut left = env.without("");
    loop {
        let error = match Layer::from_env(&left) {
            Ok(layer) => return (layer, errors),
            Err(error) => error,
        };
        left = match &error {
            Error::Bad { name, .. } => left.without(name),
            Error::NotUnicode(NotUnicode(name)) => left.without(name),
            // No other error is about a variable.
            _ => return (Layer::default(), vec![error]),
        };
        errors.push(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_cannot_be_used_hides_no_other() {
        let env: Env = [
            ("EDGECERT_TIMEOUT", "soon"),
            ("EDGECERT_VERIFY", "perhaps"),
            ("EDGECERT_BASE_URL", "https://api.example.net"),
            ("EDGECERT_STATE_DIR", "/state"),
        ]
        .into_iter()
        .collect();
        let inspection = Inspection::new(&Layer::default(), &env, &Configuration::default());
        let unusable: Vec<String> = inspection.unusable.iter().map(ToString::to_string).collect();
        assert_eq!(
            unusable,
            [
                "EDGECERT_TIMEOUT: a whole number of seconds is wanted",
                "EDGECERT_VERIFY: auto, require or off is wanted"
            ]
        );
        assert!(inspection.base_url.is_ok() && matches!(inspection.api_key, Err(Error::NoApiKey)));
        assert_eq!(inspection.state_dir, Some("/state".into()));
    }
}
