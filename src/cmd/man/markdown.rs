//! Converts the reference's Markdown to roff: headings, paragraphs, lists, tables, code and links, each as the
//! reference uses them. Tables become lists of terms, because their rows are wider than a terminal.

use super::roff::{Inline, Roff};

/// Maps the anchor of a link to a note that follows its text, such as the page that has the section.
pub(super) type Links<'a> = &'a dyn Fn(&str) -> Option<Inline>;

/// Adds the blocks of a section to a page.
pub(super) fn render(markdown: &str, links: Links<'_>, page: &mut Roff) {
    let mut input = markdown.lines().peekable();
    while let Some(line) = input.next() {
        if line.is_empty() {
        } else if line.starts_with("```") {
            page.example(input.by_ref().take_while(|line| !line.starts_with("```")));
        } else if line.starts_with('|') {
            let rest = std::iter::from_fn(|| input.next_if(|line| line.starts_with('|')));
            let rows: Vec<Vec<String>> = std::iter::once(line).chain(rest).map(cells).collect();
            table(&rows, links, page);
        } else {
            let mut text = line.to_owned();
            while let Some(next) = input.next_if(|next| !next.is_empty() && !begins_block(next)) {
                text.push(' ');
                text += next.trim_start();
            }
            match item(&text) {
                Some((mark, text)) => page.item(mark, &inline(text, links)),
                None => page.paragraph(&inline(&text, links)),
            }
        }
    }
}

fn begins_block(line: &str) -> bool {
    line.starts_with("```") || line.starts_with('|') || item(line).is_some()
}

/// Mark and text of a list item.
fn item(line: &str) -> Option<(&str, &str)> {
    let (mark, text) = line.split_once(' ')?;
    let is_number = mark.strip_suffix('.').is_some_and(|number| number.parse::<u8>().is_ok());
    (mark == "-" || is_number).then_some((mark, text))
}

/// The cells of a row. A `|` in a cell is escaped.
pub(super) fn cells(row: &str) -> Vec<String> {
    let row = row.trim().trim_start_matches('|').trim_end_matches('|').replace("\\|", "\0");
    row.split('|').map(|cell| cell.trim().replace('\0', "|")).collect()
}

/// Headings of second columns that are left out, because a list of terms needs no label.
const PLAIN: [&str; 5] = ["Meaning", "Value", "Content", "Fields", "Fault"];

/// Adds the rows as terms. A row whose first cell is empty continues the one before.
fn table(rows: &[Vec<String>], links: Links<'_>, page: &mut Roff) {
    let [header, _, rows @ ..] = rows else { return };
    for row in rows {
        let [tag, cells @ ..] = row.as_slice() else { continue };
        let labels = header.iter().skip(1);
        let items: Vec<Inline> = labels
            .zip(cells)
            .filter(|(_, cell)| !cell.is_empty())
            .map(|(label, cell)| {
                let is_plain = header.len() == 2 || PLAIN.contains(&label.as_str());
                let label = if is_plain { Inline::default() } else { labelled(label) };
                label.then(&inline(cell, links))
            })
            .collect();
        if tag.is_empty() {
            page.tagged_further(&items);
        } else {
            page.tagged(&inline(tag, links), &items);
        }
    }
}

/// A label before a value.
pub(super) fn labelled(label: &str) -> Inline {
    Inline::italic(&inline_text(label)).then(&Inline::roman(": "))
}

/// The text without marks of fonts.
fn inline_text(text: &str) -> String {
    text.replace('`', "")
}

/// Converts code to bold, emphasis to its font, and links to their text and what they add.
pub(super) fn inline(text: &str, links: Links<'_>) -> Inline {
    let mut converted = Inline::default();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let is_word_before = plain.ends_with(|c: char| c.is_alphanumeric() || "-*".contains(c));
        if let Some((span, after)) = span(rest, is_word_before) {
            converted.push(&Inline::roman(&std::mem::take(&mut plain)));
            converted.push(&match span {
                Span::Code(code) => Inline::bold(code),
                Span::Strong(text) => Inline::bold(&inline_text(text)),
                Span::Emphasis(text) => Inline::italic(&inline_text(text)),
                Span::Link { text, target } => {
                    let added = target.strip_prefix('#').and_then(links);
                    let added = added.map(|added| Inline::roman(" (").then(&added).then(&Inline::roman(")")));
                    inline(text, links).then(&added.unwrap_or_default())
                }
            });
            rest = after;
        } else {
            plain.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
        }
    }
    converted.then(&Inline::roman(&plain))
}

enum Span<'a> {
    Code(&'a str),
    Strong(&'a str),
    Emphasis(&'a str),
    Link { text: &'a str, target: &'a str },
}

/// The span at the start of the text, and what follows it.
fn span(text: &str, is_word_before: bool) -> Option<(Span<'_>, &str)> {
    if let Some(rest) = text.strip_prefix('`') {
        let (code, rest) = rest.split_once('`')?;
        return Some((Span::Code(code), rest));
    }
    if let Some(rest) = text.strip_prefix("**") {
        let (strong, rest) = rest.split_once("**")?;
        return Some((Span::Strong(strong), rest));
    }
    if let Some(rest) = text.strip_prefix('*') {
        let is_emphasis = !is_word_before && rest.starts_with(|c: char| c.is_alphanumeric());
        let (emphasis, rest) = rest.split_once('*').filter(|_| is_emphasis)?;
        return Some((Span::Emphasis(emphasis), rest));
    }
    let (inside, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (target, rest) = rest.split_once(')')?;
    (!inside.contains(['[', ']'])).then_some((Span::Link { text: inside, target }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(markdown: &str) -> String {
        let mut page = Roff::default();
        let links = |anchor: &str| (anchor == "other").then(|| Inline::page("edgecert-sync", 1));
        render(markdown, &links, &mut page);
        page.finish()
    }

    #[test]
    fn spans_become_fonts() {
        for (markdown, roff) in [
            ("a `--b` c", "a \\fB\\-\\-b\\fR c"),
            ("**a.** b", "\\fBa.\\fR b"),
            ("*bound* to", "\\fIbound\\fR to"),
            ("`*.` matches `*`", "\\fB*.\\fR matches \\fB*\\fR"),
            ("-c and --lag-*, or --sync-* x", "\\-c and \\-\\-lag\\-*, or \\-\\-sync\\-* x"),
            ("see [here](#elsewhere).", "see here."),
            ("see [there](#other).", "see there (\\fBedgecert\\-sync\\fR(1))."),
            ("[`x`](a.sh) [1] [[a]]", "\\fBx\\fR [1] [[a]]"),
            ("an unpaired ` or * or [", "an unpaired \\(ga or * or ["),
        ] {
            assert_eq!(rendered(markdown), format!(".PP\n{roff}\n"), "{markdown}");
        }
    }

    #[test]
    fn blocks_become_macros() {
        assert_eq!(rendered("a\nb\n\nc"), ".PP\na b\n.PP\nc\n");
        assert_eq!(rendered("- a\n  b\n- c\n"), ".IP \\(bu 4\na b\n.IP \\(bu 4\nc\n");
        assert_eq!(rendered("1. a\n2. b"), ".IP 1. 4\na\n.IP 2. 4\nb\n");
        assert_eq!(rendered("```sh\n\n.a\n```\nb"), ".PP\n.RS 4\n.EX\n\\&\n\\&.a\n.EE\n.RE\n.PP\nb\n");
    }

    #[test]
    fn tables_become_terms() {
        let table = "| A | Meaning | Do `it` |\n|---|---|---|\n| `a` | b \\| c | |\n| | d | e |\n";
        let roff = ".TP\n\\fBa\\fR\nb | c\n.IP\nd\n.br\n\\fIDo it\\fR: e\n";
        assert_eq!(rendered(table), roff);
    }
}
