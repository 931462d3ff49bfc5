//! Splits shell text into the simple commands that it may run, for finding calls of edgecert in it.
//!
//! This is not a shell: nothing is evaluated. Words that depend on variables keep a `$`. Commands that are never
//! reached, because of an `exit` above them or after `false &&`, are left out; other conditions are assumed to hold.

use super::lexer::{Lexer, Operator, Token, Word};

/// The words of a simple command, with its assignments.
pub(super) type SimpleCommand = Vec<String>;

/// Maximum depth of nested substitutions.
const MAX_DEPTH: usize = 8;

/// Splits a script or a command line.
pub(super) fn commands(text: &str) -> Vec<SimpleCommand> {
    commands_below(text, MAX_DEPTH)
}

fn commands_below(text: &str, depth: usize) -> Vec<SimpleCommand> {
    let mut lexer = Lexer::new(text);
    let mut list = List::default();
    let mut words: Vec<Word> = Vec::new();
    let mut is_redirected = false;
    while let Some(token) = lexer.next_token() {
        match token {
            // The file of a redirection.
            Token::Word(_) if is_redirected => is_redirected = false,
            Token::Word(word) => words.push(word),
            Token::Redirection => is_redirected = true,
            Token::Operator(operator) => {
                list.end_command(std::mem::take(&mut words), operator);
                is_redirected = false;
            }
        }
        for inner in lexer.take_substitutions().into_iter().filter(|_| depth > 0 && !list.is_over) {
            list.found.extend(commands_below(&inner, depth - 1));
        }
    }
    list.end_command(words, Operator::End);
    list.found
}

/// The commands found so far, and where in the script the next one is.
#[derive(Default)]
struct List {
    found: Vec<SimpleCommand>,
    /// What encloses the next command, such as `if` or `(`.
    enclosing: Vec<&'static str>,
    /// What precedes the next command.
    before: Operator,
    /// The program of the command before an `&&` or `||`.
    condition: Option<String>,
    /// Whether the script ends before the next command.
    is_over: bool,
}

impl List {
    fn end_command(&mut self, mut words: Vec<Word>, operator: Operator) {
        let is_definition = operator == Operator::Open && words.len() == 1;
        // A pattern of `case`.
        let is_pattern = operator == Operator::Close && self.enclosing.last() != Some(&"(");
        self.strip_keywords(&mut words);
        if !is_definition && !is_pattern {
            self.add(words.into_iter().map(|word| word.text).collect(), operator);
        }
        match operator {
            Operator::Open => self.enclosing.push("("),
            Operator::Close if !is_pattern => _ = self.enclosing.pop(),
            _ => {}
        }
        self.before = operator;
    }

    /// Removes the keywords before a command, and notes what they open and close.
    fn strip_keywords(&mut self, words: &mut Vec<Word>) {
        while let Some(first) = words.first().filter(|first| !first.is_quoted) {
            match first.text.as_str() {
                "if" => self.enclosing.push("if"),
                "while" | "until" => self.enclosing.push("do"),
                "{" => self.enclosing.push("{"),
                keyword @ ("for" | "select" | "case") => {
                    self.enclosing.push(if keyword == "case" { "case" } else { "do" });
                    // Their words are not commands.
                    words.clear();
                    return;
                }
                "fi" | "done" | "esac" | "}" => _ = self.enclosing.pop(),
                "then" | "elif" | "else" | "do" | "!" | "time" => {}
                "function" => {
                    words.clear();
                    return;
                }
                _ => return,
            }
            words.remove(0);
        }
    }

    fn add(&mut self, words: Vec<String>, operator: Operator) {
        let program = words.iter().find(|word| super::assignment(word).is_none()).cloned();
        let is_skipped = matches!(
            (self.before, self.condition.as_deref()),
            (Operator::And, Some("false")) | (Operator::Or, Some("true" | ":"))
        );
        let is_certain = self.enclosing.is_empty() && !matches!(self.before, Operator::And | Operator::Or);
        let is_last = match program.as_deref() {
            Some("exit" | "return") => true,
            // Without a command, it only redirects.
            Some("exec") => words.len() > 1,
            _ => false,
        };
        let is_end = is_last && is_certain && operator != Operator::Pipe;
        if words.is_empty() {
            return;
        }
        if !self.is_over && !is_skipped {
            self.found.push(words);
        }
        self.is_over |= is_end;
        self.condition = if is_skipped { Some("false".into()) } else { program };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands of a script, one per line.
    fn split(text: &str) -> Vec<String> {
        commands(text).iter().map(|words| words.join(" ")).collect()
    }

    #[test]
    fn commands_are_found_in_any_syntax() {
        let rows: [(&str, &[&str]); 22] = [
            ("edgecert sync", &["edgecert sync"]),
            ("# edgecert sync", &[]),
            ("true # edgecert sync", &["true"]),
            ("echo '# no comment' a#b", &["echo # no comment a#b"]),
            ("a; b & c\nd", &["a", "b", "c", "d"]),
            ("a && b || c | d", &["a", "b", "c", "d"]),
            ("edgecert \\\n  sync", &["edgecert sync"]),
            ("edgecert sync > /dev/null 2>&1", &["edgecert sync"]),
            ("edgecert sync >>log 2>>log </dev/null", &["edgecert sync"]),
            ("edgecert sync &> log; a", &["edgecert sync", "a"]),
            ("A=1 B='x y' edgecert sync", &["A=1 B=x y edgecert sync"]),
            ("\"${BIN:-edgecert}\" \"$@\"", &["edgecert $@"]),
            ("x=$(edgecert sync)", &["edgecert sync", "x=$"]),
            ("x=`edgecert sync`", &["edgecert sync", "x=$"]),
            ("if edgecert sync; then a; else b; fi; c", &["edgecert sync", "a", "b", "c"]),
            ("for x in edgecert sync; do a; done", &["a"]),
            ("while a; do b; done", &["a", "b"]),
            ("case $1 in edgecert) a;; *) b;; esac; c", &["a", "b", "c"]),
            ("edgecert() { a; }; b", &["a", "b"]),
            ("(cd /x && edgecert sync)", &["cd /x", "edgecert sync"]),
            ("cat <<END > f\nedgecert sync\nEND\na", &["cat", "a"]),
            ("echo \"a\nedgecert sync\nb\"", &["echo a\nedgecert sync\nb"]),
        ];
        for (text, expected) in rows {
            assert_eq!(split(text), expected, "{text}");
        }
    }

    #[test]
    fn unreachable_commands_are_left_out() {
        let rows: [(&str, &[&str]); 9] = [
            ("exit 0\nedgecert sync", &["exit 0"]),
            ("exec a\nedgecert sync", &["exec a"]),
            ("exec > log\nedgecert sync", &["exec", "edgecert sync"]),
            ("[ -x a ] || exit 0\nedgecert sync", &["[ -x a ]", "exit 0", "edgecert sync"]),
            ("if a; then exit 0; fi\nedgecert sync", &["a", "exit 0", "edgecert sync"]),
            ("case $1 in a) exit 0;; esac\nedgecert sync", &["exit 0", "edgecert sync"]),
            ("f() { return 0; }\nedgecert sync", &["return 0", "edgecert sync"]),
            ("false && edgecert sync", &["false"]),
            ("true || edgecert sync", &["true"]),
        ];
        for (text, expected) in rows {
            assert_eq!(split(text), expected, "{text}");
        }
    }

    #[test]
    fn unbalanced_text_ends() {
        for text in ["'", "\"", "$(", "${", "`", "\\", "<<", "(((", ")))", ";;;", "<", "2>", "a <<E"] {
            split(text);
        }
        split(&"$(".repeat(100_000));
        split(&"(".repeat(100_000));
    }
}
