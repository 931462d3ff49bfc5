//! Splits shell text into words and operators.

use std::iter::Peekable;
use std::str::Chars;

/// Splits a line of words without operators, as systemd does.
pub(in crate::cmd::doctor) fn words(line: &str) -> Vec<String> {
    let mut lexer = Lexer::new(line);
    let mut words = Vec::new();
    loop {
        while lexer.chars.next_if(|c| c.is_whitespace()).is_some() {}
        if lexer.chars.peek().is_none() {
            return words;
        }
        words.push(lexer.word(char::is_whitespace).text);
    }
}

/// A word, and whether any of it was quoted: a quoted keyword is an ordinary word.
#[derive(Default)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) is_quoted: bool,
}

pub(super) enum Token {
    Word(Word),
    Redirection,
    Operator(Operator),
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Operator {
    /// `;`, `&`, a newline or the end of the text.
    #[default]
    End,
    And,
    Or,
    Pipe,
    Open,
    Close,
}

pub(super) struct Lexer<'t> {
    chars: Peekable<Chars<'t>>,
    /// Delimiters of the here-documents that begin after this line.
    here_documents: Vec<String>,
    /// Text of the command substitutions that were read.
    substitutions: Vec<String>,
}

const METACHARACTERS: &str = ";&|()<> \t\n";

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { chars: text.chars().peekable(), here_documents: Vec::new(), substitutions: Vec::new() }
    }

    /// Takes the text of the command substitutions that were read so far.
    pub(super) fn take_substitutions(&mut self) -> Vec<String> {
        std::mem::take(&mut self.substitutions)
    }

    pub(super) fn next_token(&mut self) -> Option<Token> {
        loop {
            let c = *self.chars.peek()?;
            match c {
                ' ' | '\t' | '\r' => _ = self.chars.next(),
                '#' => while self.chars.next_if(|c| *c != '\n').is_some() {},
                '\n' => {
                    self.chars.next();
                    self.skip_here_documents();
                    return Some(Token::Operator(Operator::End));
                }
                '<' | '>' => return Some(self.redirection()),
                ';' | '&' | '|' | '(' | ')' => return Some(self.operator()),
                _ => {
                    let word = self.word(|c| METACHARACTERS.contains(c));
                    // The number of a redirection such as `2>`.
                    let is_descriptor = word.text.bytes().all(|b| b.is_ascii_digit())
                        && self.chars.peek().is_some_and(|c| "<>".contains(*c));
                    let is_continuation = word.text.is_empty();
                    if word.is_quoted || !is_descriptor && !is_continuation {
                        return Some(Token::Word(word));
                    }
                }
            }
        }
    }

    fn operator(&mut self) -> Token {
        let first = self.chars.next();
        let is_double = |reader: &mut Self, c| reader.chars.next_if_eq(&c).is_some();
        Token::Operator(match first {
            Some('&') if is_double(self, '&') => Operator::And,
            Some('&') if self.chars.peek() == Some(&'>') => return self.redirection(),
            Some('|') if is_double(self, '|') => Operator::Or,
            Some('|') => {
                is_double(self, '&');
                Operator::Pipe
            }
            Some('(') => Operator::Open,
            Some(')') => Operator::Close,
            _ => Operator::End,
        })
    }

    fn redirection(&mut self) -> Token {
        let mut operator = String::new();
        while let Some(c) = self.chars.next_if(|c| "<>&|".contains(*c)) {
            operator.push(c);
        }
        if operator == "<<" {
            self.chars.next_if_eq(&'-');
            while self.chars.next_if(|c| " \t".contains(*c)).is_some() {}
            let delimiter = self.word(|c| METACHARACTERS.contains(c));
            self.here_documents.push(delimiter.text);
            return self.next_token().unwrap_or(Token::Operator(Operator::End));
        }
        Token::Redirection
    }

    fn skip_here_documents(&mut self) {
        for delimiter in std::mem::take(&mut self.here_documents) {
            loop {
                let mut line = String::new();
                while let Some(c) = self.chars.next_if(|c| *c != '\n') {
                    line.push(c);
                }
                if self.chars.next().is_none() || line.trim() == delimiter {
                    break;
                }
            }
        }
    }

    /// Reads a word up to an unquoted character that ends it.
    fn word(&mut self, is_end: impl Fn(char) -> bool) -> Word {
        let mut word = Word::default();
        while let Some(c) = self.chars.next_if(|c| !is_end(*c)) {
            match c {
                '\'' => {
                    word.is_quoted = true;
                    word.text.extend(self.until('\''));
                }
                '"' => {
                    word.is_quoted = true;
                    self.double_quoted(&mut word.text);
                }
                '\\' => match self.chars.next() {
                    // Line continuation.
                    Some('\n') | None => {}
                    Some(c) => {
                        word.is_quoted = true;
                        word.text.push(c);
                    }
                },
                '$' => self.expansion(&mut word.text),
                '`' => {
                    let inner = self.until('`').into_iter().collect();
                    self.substitution(inner, &mut word.text);
                }
                c => word.text.push(c),
            }
        }
        word
    }

    fn double_quoted(&mut self, text: &mut String) {
        while let Some(c) = self.chars.next() {
            match c {
                '"' => return,
                '\\' => match self.chars.next() {
                    Some('\n') | None => {}
                    Some(c) if "$`\"\\".contains(c) => text.push(c),
                    Some(c) => text.extend(['\\', c]),
                },
                '$' => self.expansion(text),
                '`' => {
                    let inner = self.until('`').into_iter().collect();
                    self.substitution(inner, text);
                }
                c => text.push(c),
            }
        }
    }

    /// Reads what follows a `$`: a variable, whose default value is used if it has one, or a command.
    fn expansion(&mut self, text: &mut String) {
        let (open, close) = match self.chars.peek() {
            Some('{') => ('{', '}'),
            Some('(') => ('(', ')'),
            _ => return text.push('$'),
        };
        self.chars.next();
        let inner = self.balanced(open, close);
        if open == '(' {
            return self.substitution(inner, text);
        }
        match inner.split_once('-') {
            Some((name, default)) if name.trim_end_matches(':').bytes().all(is_name_byte) => {
                text.push_str(default.trim_matches('"'));
            }
            _ => text.extend(["${", &inner, "}"]),
        }
    }

    fn substitution(&mut self, inner: String, text: &mut String) {
        self.substitutions.push(inner);
        text.push('$');
    }

    /// Reads up to the matching closing bracket.
    fn balanced(&mut self, open: char, close: char) -> String {
        let (mut inner, mut depth) = (String::new(), 1);
        for c in self.chars.by_ref() {
            match c {
                c if c == open => depth += 1,
                c if c == close => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            inner.push(c);
        }
        inner
    }

    fn until(&mut self, end: char) -> Vec<char> {
        self.chars.by_ref().take_while(|c| *c != end).collect()
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
