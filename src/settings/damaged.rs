//! Reads single keys of a configuration file that is not valid TOML, for what a run needs even then: whom to notify of
//! the failure, and where to record it.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Reads the keys that can be read.
pub(super) fn read<'t>(text: &'t str, keys: &[&'static str]) -> DeTable<'t> {
    let found =
        keys.iter().filter_map(|key| Some((Spanned::new(0..0, Cow::Borrowed(*key)), find(text, key)?)));
    found.collect()
}

/// Finds a key in the first line that begins with it, if that line, or the lines that its value takes, can be parsed by
/// themselves.
fn find<'t>(text: &'t str, key: &str) -> Option<Spanned<DeValue<'t>>> {
    let is_key = |line: &&str| {
        line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let before: usize = text.split_inclusive('\n').take_while(|line| !is_key(line)).map(str::len).sum();
    let rest = text.get(before..)?;
    let (document, errors) = DeTable::parse_recoverable(rest);
    let value = document.into_inner().remove(key)?;
    let (start, end) = (before + value.span().start, value.span().end);
    let end_of_line = rest.get(end..)?.find('\n').map_or(rest.len(), |at| end + at);
    let is_damaged = errors.iter().any(|error| error.span().is_none_or(|span| span.start <= end_of_line));
    (!is_damaged).then(|| Spanned::new(start..before + end, value.into_inner()))
}
