//! `edgecert completions`: a script that lets a shell complete commands, flags and the fields of a site.
//!
//! What clap makes is nearly enough. A field ends in `=`, behind which no blank belongs; bash also takes the `=` for
//! the end of a word. The lines that are added here are about that alone.

use clap_complete::{generate, shells};

use crate::cli::{Cli, CompletionsArgs, Shell};
use crate::error::CommandError;
use crate::fields::{FIELDS, Field};
use crate::report::CommandReport;
use anyhow::Context as _;

const NAME: &str = "edgecert";

/// Around clap's function: behind `--set FIELD=` the values of that field, and no blank after a `=`.
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

/// In place of clap's list of words, which zsh would end with a blank each.
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

/// Where the functions begin that clap makes for zsh; the first one is to know ours.
const FIRST: &str = "\n(( $+functions[_edgecert_commands] )) ||\n";

/// Runs the command.
pub(crate) fn run(args: CompletionsArgs, report: &mut CommandReport) -> Result<(), CommandError> {
    let script = script(args.shell)?;
    report.body.set("script", &script);
    report.body.text = script;
    report.body.is_product = true;
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
            script.replacen(FIRST, &(ZSH.replace("FIELDS", &words) + FIRST), 1)
        }
        // Fish adds no blank behind a `=` by itself.
        Shell::Fish => script,
    })
}
