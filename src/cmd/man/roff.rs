//! Writes a page in the language of man(7), in ASCII.

use std::fmt::Write as _;

/// A page. Text arguments are escaped unless they are [`Inline`].
#[derive(Debug, Default)]
pub(super) struct Roff {
    text: String,
    /// Whether nothing follows the last heading yet: a paragraph macro there is an error.
    is_after_heading: bool,
}

/// Text with fonts, already escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Inline(String);

impl Inline {
    pub(super) fn roman(text: &str) -> Self {
        Self(escape(text))
    }

    pub(super) fn bold(text: &str) -> Self {
        Self(format!("\\fB{}\\fR", escape(text)))
    }

    pub(super) fn italic(text: &str) -> Self {
        Self(format!("\\fI{}\\fR", escape(text)))
    }

    /// A reference to another page.
    pub(super) fn page(name: &str, section: u8) -> Self {
        Self::bold(name).then(&Self::roman(&format!("({section})")))
    }

    pub(super) fn then(mut self, next: &Self) -> Self {
        self.0 += &next.0;
        self
    }

    pub(super) fn push(&mut self, next: &Self) {
        self.0 += &next.0;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Roff {
    /// Begins a page. The date is that of the release, so that the same source gives the same page.
    pub(super) fn page(name: &str, section: u8) -> Self {
        let mut page = Self::default();
        let (title, version) = (escape(&name.to_uppercase()), escape(env!("CARGO_PKG_VERSION")));
        let date = env!("EDGECERT_RELEASE_DATE");
        page.line(&format!(
            ".TH \"{title}\" \"{section}\" \"{date}\" \"edgecert {version}\" \"edgecert manual\""
        ));
        // Neither hyphenation nor justification: both would change words that can be pasted.
        page.line(".nh");
        page.line(".ad l");
        page
    }

    pub(super) fn section(&mut self, title: &str) {
        self.heading("SH", &title.to_uppercase());
    }

    pub(super) fn subsection(&mut self, title: &str) {
        self.heading("SS", title);
    }

    fn heading(&mut self, name: &str, title: &str) {
        self.line(&format!(".{name} \"{}\"", escape(title).replace('"', "\\(dq")));
        self.is_after_heading = true;
    }

    pub(super) fn paragraph(&mut self, text: &Inline) {
        self.begin_paragraph();
        self.inline(text);
    }

    /// A term, and what it means. The paragraphs after the first one are lines of their own.
    pub(super) fn tagged(&mut self, tag: &Inline, lines: &[Inline]) {
        self.line(".TP");
        self.inline(tag);
        self.lines(lines);
        if lines.is_empty() {
            self.line("\\&");
        }
    }

    /// Another paragraph about the last term.
    pub(super) fn tagged_further(&mut self, lines: &[Inline]) {
        self.line(".IP");
        self.lines(lines);
    }

    pub(super) fn item(&mut self, mark: &str, text: &Inline) {
        let mark = if mark == "-" { "\\(bu" } else { mark };
        self.line(&format!(".IP {mark} 4"));
        self.inline(text);
    }

    /// Lines that are shown as they are.
    pub(super) fn example<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) {
        self.begin_paragraph();
        self.line(".RS 4");
        self.line(".EX");
        for line in lines {
            self.inline(&Inline::roman(line));
        }
        self.line(".EE");
        self.line(".RE");
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    /// Paragraphs as lines of their own.
    fn lines(&mut self, lines: &[Inline]) {
        for (at, line) in lines.iter().enumerate() {
            if at > 0 {
                self.line(".br");
            }
            self.inline(line);
        }
    }

    fn begin_paragraph(&mut self) {
        if !self.is_after_heading {
            self.line(".PP");
        }
        self.is_after_heading = false;
    }

    /// A line of text, which must not be taken for a macro.
    fn inline(&mut self, text: &Inline) {
        self.is_after_heading = false;
        let guard = if text.0.starts_with('.') || text.is_empty() { "\\&" } else { "" };
        self.line(&format!("{guard}{}", text.0));
    }

    fn line(&mut self, line: &str) {
        if line.starts_with('.') {
            self.is_after_heading = false;
        }
        self.text += line;
        self.text.push('\n');
    }
}

/// Replaces what roff would interpret or typeset as another character, and all that is not ASCII.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => escaped += "\\e",
            '-' => escaped += "\\-",
            '\'' => escaped += "\\(aq",
            '`' => escaped += "\\(ga",
            '^' => escaped += "\\(ha",
            '~' => escaped += "\\(ti",
            '\u{2026}' => escaped += "...",
            c if c.is_ascii() => escaped.push(c),
            c => _ = write!(escaped, "\\[u{:04X}]", u32::from(c)),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        for (text, escaped) in [
            ("a-b", "a\\-b"),
            ("it's", "it\\(aqs"),
            ("C:\\x", "C:\\ex"),
            ("`~^", "\\(ga\\(ti\\(ha"),
            ("a\u{2026}", "a..."),
            ("\u{2713}", "\\[u2713]"),
        ] {
            assert_eq!(escape(text), escaped);
        }
    }

    #[test]
    fn text_is_never_a_macro() {
        let mut page = Roff::default();
        page.paragraph(&Inline::roman(".prom is a suffix"));
        page.example(["", ".x"]);
        assert_eq!(page.finish(), ".PP\n\\&.prom is a suffix\n.PP\n.RS 4\n.EX\n\\&\n\\&.x\n.EE\n.RE\n");
    }

    #[test]
    fn no_paragraph_macro_follows_a_heading() {
        let mut page = Roff::default();
        page.section("Name");
        page.paragraph(&Inline::bold("a"));
        page.paragraph(&Inline::italic("b"));
        assert_eq!(page.finish(), ".SH \"NAME\"\n\\fBa\\fR\n.PP\n\\fIb\\fR\n");
    }
}
