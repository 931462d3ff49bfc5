//! Reads single keys of a configuration file that is not valid TOML, for what a run needs even then: whom to notify of
//! the failure, and where to record it.

use toml::de::{DeTable, DeValue};

/// Finds a key in the first line that begins with it, if that line, or the lines that its value takes, can be parsed by
/// themselves. Returns its value and its offset.
pub(super) fn find<T>(
    text: &str,
    key: &str,
    read: impl FnOnce(&DeValue<'_>) -> Option<T>,
) -> Option<(T, usize)> {
    let is_key = |line: &&str| {
        line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let before = text.split_inclusive('\n').take_while(|line| !is_key(line)).map(str::len).sum();
    let rest: &str = text.get(before..)?;
    let (document, errors) = DeTable::parse_recoverable(rest);
    let value = document.get_ref().get(key)?;
    let end = rest.get(value.span().end..)?.find('\n').map_or(rest.len(), |at| value.span().end + at);
    let is_damaged = errors.iter().any(|error| error.span().is_none_or(|span| span.start <= end));
    if is_damaged { None } else { Some((read(value.get_ref())?, before)) }
}
