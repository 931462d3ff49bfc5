//! `edgecert completions`: prints a script that completes commands, flags and the fields of a site.
//!
//! clap generates the scripts. The additions here are only for `--set FIELD=VALUE`: no space may follow the `=`, and
//! bash treats `=` as the end of a word.

use clap_complete::{generate, shells};

use crate::cli::{Cli, CompletionsArgs, Shell};
use crate::error::CommandError;
use crate::fields::{FIELDS, Field};
use crate::report::CommandReport;
use anyhow::Context as _;

const NAME: &str = "edgecert";

/// Wraps clap's function: completes the values of a field after `--set FIELD=`, and adds no space after `=`.
const BASH: &str = r#"
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

/// Replaces clap's list of words, to each of which zsh would add a space.
const ZSH: &str = r"
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
";

/// Start of the first function that clap generates for zsh; [`ZSH`] goes before it.
const FIRST_ZSH_FUNCTION: &str = "\n(( $+functions[_edgecert_commands] )) ||\n";

/// Runs the command.
pub(crate) fn run(args: CompletionsArgs, report: &mut CommandReport) -> Result<(), CommandError> {
    let script = script(args.shell)?;
    report.body.set("script", &script);
    report.body.text = script;
    Ok(())
}

fn script(shell: Shell) -> Result<String, CommandError> {
    let mut command = Cli::definition();
    let words = FIELDS.iter().flat_map(Field::assignments).collect::<Vec<_>>().join(" ");
    let mut bytes = Vec::new();
    match shell {
        Shell::Bash => generate(shells::Bash, &mut command, NAME, &mut bytes),
        Shell::Zsh => generate(shells::Zsh, &mut command, NAME, &mut bytes),
        Shell::Fish => generate(shells::Fish, &mut command, NAME, &mut bytes),
    }
    let script = String::from_utf8(bytes).context("the completion script is not UTF-8")?;
    Ok(match shell {
        Shell::Bash => script + &BASH.replace("FIELDS", &words),
        Shell::Zsh => {
            let list = format!(":FIELD=VALUE:({words})");
            let script = script.replace(&list, ":FIELD=VALUE:_edgecert_fields");
            script.replacen(FIRST_ZSH_FUNCTION, &(ZSH.replace("FIELDS", &words) + FIRST_ZSH_FUNCTION), 1)
        }
        // fish itself adds no space after `=`.
        Shell::Fish => script,
    })
}
