//! `edgecert completions`: prints a script that completes commands, flags, the fields of a site, lineages and domains.
//!
//! clap generates the scripts. The additions here are for `--set FIELD=VALUE` (no space may follow the `=`, and bash
//! treats `=` as the end of a word), and for lineages and domains, which the scripts ask this program for. clap's own
//! dynamic completion is not used: a variable in a hook's environment would turn a deployment into a completion.

mod candidates;

use std::collections::BTreeSet;

use clap_complete::{Generator, generate, shells};

use self::candidates::Candidates;
use crate::cli::{Cli, CompletionOutput, CompletionsArgs};
use crate::context::Context;
use crate::error::CommandError;
use crate::fields::{FIELDS, Field};
use crate::report::CommandReport;
use anyhow::Context as _;

const NAME: &str = "edgecert";

/// Wraps clap's function: completes the values of a field after `--set FIELD=`, adds no space after `=`, and offers
/// lineages and domains.
const BASH: &str = r#"
_edgecert_candidates() {
    local word quoted
    while IFS= read -r word; do
        printf -v quoted %q "$word"
        [[ $word == "$2"* || $quoted == "$2"* ]] && COMPREPLY+=("$quoted")
    done < <(edgecert completions "$1" 2>/dev/null)
}
_edgecert_argument() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
    if [[ $current == "=" ]]; then
        current=""
    elif [[ $before == "=" ]]; then
        before=${COMP_WORDS[COMP_CWORD-2]}
    fi
    case $before in
        --lineage) _edgecert_candidates lineages "$current" ;;
        --forget) _edgecert_candidates recorded "$current" ;;
        --domain) _edgecert_candidates domains "$current" ;;
        SITE_COMMANDS)
            if [[ ${COMP_WORDS[COMP_CWORD-2]} == sites && $current != -* ]]; then
                _edgecert_candidates domains "$current"
            fi ;;
    esac
}
_edgecert_fields() {
    local at=$COMP_CWORD field="" start="" word
    if (( at < 3 )); then
        :
    elif [[ ${COMP_WORDS[at-1]} == "=" && ${COMP_WORDS[at-3]} == "--set" ]]; then
        field=${COMP_WORDS[at-2]} start=${COMP_WORDS[at]}
    elif [[ ${COMP_WORDS[at]} == "=" && ${COMP_WORDS[at-2]} == "--set" ]]; then
        field=${COMP_WORDS[at-1]}
    fi
    if [[ -n $field ]]; then
        COMPREPLY=()
        for word in FIELDS; do
            [[ $word == "$field=$start"?* ]] && COMPREPLY+=("${word#*=}")
        done
        return 0
    fi
    _edgecert "$@"
    _edgecert_argument
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace 2>/dev/null
    fi
    return 0
}
if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _edgecert_fields -o nosort -o bashdefault -o default edgecert
else
    complete -F _edgecert_fields -o bashdefault -o default edgecert
fi
"#;

/// `_edgecert_fields` replaces clap's list of words, to each of which zsh would add a space.
const ZSH: &str = r#"
(( $+functions[_edgecert_candidates] )) ||
_edgecert_candidates() {
    local -a candidates
    candidates=(${(f)"$(edgecert completions $1 2>/dev/null)"})
    compadd "${@:2}" -a candidates
}
(( $+functions[_edgecert_lineages] )) ||
_edgecert_lineages() {
    _edgecert_candidates lineages "$@"
    _files "$@" -/
}
(( $+functions[_edgecert_recorded] )) ||
_edgecert_recorded() {
    _edgecert_candidates recorded "$@"
    _files "$@"
}
(( $+functions[_edgecert_domains] )) ||
_edgecert_domains() {
    _edgecert_candidates domains "$@"
}
(( $+functions[_edgecert_fields] )) ||
_edgecert_fields() {
    local -a fields values
    local word
    for word in FIELDS; do
        if [[ $word == *= ]]; then fields+=($word); else values+=($word); fi
    done
    compadd -S '' -a fields
    compadd -a values
}
"#;

/// The subcommands of `sites` whose first argument is a site.
const SITE_COMMANDS: [&str; 6] = ["get", "update", "bind", "enable", "disable", "delete"];

/// Start of the first function that clap generates for zsh; [`ZSH`] goes before it.
const FIRST_ZSH_FUNCTION: &str = "\n(( $+functions[_edgecert_commands] )) ||\n";

/// Runs the command.
pub(crate) fn run(
    args: CompletionsArgs,
    context: &Context,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    let list = |kind| candidates::list(kind, context);
    match args.output {
        CompletionOutput::Bash => set_script(bash_script()?, report),
        CompletionOutput::Zsh => set_script(zsh_script()?, report),
        CompletionOutput::Fish => set_script(fish_script()?, report),
        CompletionOutput::Lineages => set_candidates(&list(Candidates::Lineages), report),
        CompletionOutput::Recorded => set_candidates(&list(Candidates::Recorded), report),
        CompletionOutput::Domains => set_candidates(&list(Candidates::Domains), report),
    }
    Ok(())
}

fn set_script(script: String, report: &mut CommandReport) {
    report.body.set("script", &script);
    report.body.text = script;
}

fn set_candidates(candidates: &BTreeSet<String>, report: &mut CommandReport) {
    report.body.set("candidates", candidates);
    report.body.text = candidates.iter().map(|candidate| candidate.to_owned() + "\n").collect();
}

/// clap's script.
fn generated(shell: impl Generator) -> Result<String, CommandError> {
    let mut bytes = Vec::new();
    generate(shell, &mut Cli::definition(), NAME, &mut bytes);
    Ok(String::from_utf8(bytes).context("the completion script is not UTF-8")?)
}

/// The completions of `--set`.
fn assignments() -> String {
    FIELDS.iter().flat_map(Field::assignments).collect::<Vec<_>>().join(" ")
}

fn bash_script() -> Result<String, CommandError> {
    let added = BASH.replace("FIELDS", &assignments()).replace("SITE_COMMANDS", &SITE_COMMANDS.join(" | "));
    Ok(generated(shells::Bash)? + &added)
}

fn zsh_script() -> Result<String, CommandError> {
    let words = assignments();
    let list = format!(":FIELD=VALUE:({words})");
    let script = generated(shells::Zsh)?.replace(&list, ":FIELD=VALUE:_edgecert_fields");
    let script: String = script.lines().map(|line| zsh_line(line) + "\n").collect();
    Ok(script.replacen(FIRST_ZSH_FUNCTION, &(ZSH.replace("FIELDS", &words) + FIRST_ZSH_FUNCTION), 1))
}

/// fish itself adds no space after `=`.
fn fish_script() -> Result<String, CommandError> {
    let script: String = generated(shells::Fish)?.lines().map(|line| fish_line(line) + "\n").collect();
    let sites = format!(
        "complete -c edgecert -n \"__fish_edgecert_using_subcommand sites; and __fish_seen_subcommand_from {}\" \
         -f -a \"{}\"\n",
        SITE_COMMANDS.join(" "),
        fish_candidates("domains"),
    );
    Ok(script + &sites)
}

/// The command substitution of fish that lists candidates. Without the test, fish reports a missing program even so.
fn fish_candidates(kind: &str) -> String {
    format!("(command -q edgecert; and edgecert completions {kind} 2>/dev/null)")
}

/// A line of clap's script for zsh, with the function that completes the argument of this option.
fn zsh_line(line: &str) -> String {
    for (start, function) in [
        ("--lineage=", "_edgecert_lineages"),
        ("--forget=", "_edgecert_recorded"),
        ("--domain=", "_edgecert_domains"),
        ("':site -- ", "_edgecert_domains"),
    ] {
        if line.contains(start)
            && let Some((argument, _)) = line.rsplit_once(':')
        {
            let (_, end) = line.rsplit_once('\'').unwrap_or_default();
            return format!("{argument}:{function}'{end}");
        }
    }
    line.to_owned()
}

/// A line of clap's script for fish, with the candidates for this option.
fn fish_line(line: &str) -> String {
    const DIRECTORIES: &str = "(__fish_complete_directories)";
    if line.contains(" -l lineage ") {
        line.replace(DIRECTORIES, &format!("{DIRECTORIES} {}", fish_candidates("lineages")))
    } else if line.contains(" -l forget ") {
        format!("{line} -a \"{}\"", fish_candidates("recorded"))
    } else if line.contains(" -l domain ") {
        format!("{line} -f -a \"{}\"", fish_candidates("domains"))
    } else {
        line.to_owned()
    }
}
