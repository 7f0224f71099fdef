//! Just enough of Rust's grammar to look at code without its comments, strings and tests.

/// `text` with comments, strings and characters blanked out; every line stays where it was.
pub(super) fn code_only(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let before = out.chars().next_back();
        let len = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if let Some(len) = literal(rest, before) {
            len
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        let (blanked, after) = rest.split_at(len);
        out.extend(blanked.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = after;
    }
    out
}

/// The length of the block comment that `rest` starts with; they nest.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The length of the string or character that `rest` starts with, if it does, where `before` stands before it.
fn literal(rest: &str, before: Option<char>) -> Option<usize> {
    if let Some(inner) = rest.strip_prefix('"') {
        return Some(1 + to_closing(inner, '"'));
    }
    if let Some(inner) = rest.strip_prefix('\'') {
        // `'a` without a second quote is a lifetime or a label.
        let mut chars = inner.chars();
        let first = chars.next()?;
        return (first == '\\' || chars.next() == Some('\'')).then(|| 1 + to_closing(inner, '\''));
    }
    if before.is_some_and(is_ident) {
        return None;
    }
    // `b"…"`, `c"…"` and `b'…'` need no rule: their letter stays, and the rest is found above.
    let raw = ["br", "cr", "r"]
        .iter()
        .find_map(|prefix| rest.strip_prefix(prefix))?;
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    let inner = raw[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let len = inner.find(&end).map_or(inner.len(), |at| at + end.len());
    Some(rest.len() - inner.len() + len)
}

/// The length up to and with the `quote` that closes what `inner` is the inside of.
fn to_closing(inner: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in inner.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    inner.len()
}

/// `code` (from [`code_only`]) with every item under `#[cfg(test)]` blanked out, and the names of the modules among
/// these that stand in files of their own.
pub(super) fn without_tests(code: &str) -> (String, Vec<String>) {
    let mut out = String::with_capacity(code.len());
    let mut modules = Vec::new();
    let mut rest = code;
    while let Some(at) = ["#[cfg(test)]", "#[cfg(all(test,"]
        .iter()
        .filter_map(|attribute| rest.find(attribute))
        .min()
    {
        let (before, from) = rest.split_at(at);
        let (item, after) = from.split_at(item_len(from));
        if item.ends_with(';')
            && let Some((_, name)) = item.rsplit_once("mod ")
        {
            modules.push(name.trim_end_matches(';').trim().to_owned());
        }
        out.push_str(before);
        out.extend(item.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = after;
    }
    out.push_str(rest);
    (out, modules)
}

/// The length of the item, attributes included, that `code` starts with.
fn item_len(code: &str) -> usize {
    // Round and square brackets hide the `;` of an array type, and attributes.
    let mut brackets = 0_i32;
    let mut braces = 0_i32;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            '{' => braces += 1,
            '}' => braces -= 1,
            _ => {}
        }
        let ends = matches!(c, '}' | ';') && braces == 0 && brackets == 0;
        if ends {
            return at + 1;
        }
    }
    code.len()
}

/// The lines and paths of every import in `code`, written out: `use a::{b, c::d};` gives `a::b` and `a::c::d`.
pub(super) fn imports(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("use ") {
        if code[..at].ends_with(is_ident) {
            continue;
        }
        let line = line_of(code, at);
        let tree = code[at + 4..].split(';').next().unwrap_or_default();
        let mut prefixes: Vec<String> = vec![String::new()];
        let mut path = String::new();
        for c in tree.chars().chain([',']) {
            match c {
                '{' => prefixes.push(std::mem::take(&mut path)),
                ',' | '}' => {
                    let path = std::mem::take(&mut path);
                    if !path.is_empty() {
                        found.push((line, format!("{}{path}", prefixes.concat())));
                    }
                    if c == '}' {
                        prefixes.pop();
                    }
                }
                c if c.is_whitespace() => {}
                c => path.push(c),
            }
        }
    }
    found
}

/// Whether `word`, which may be a path, stands in `line` with nothing of a longer name around it.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let after = &line[at + word.len()..];
        let starts = !line[..at].ends_with(is_ident) || !word.starts_with(is_ident);
        let ends = !after.starts_with(is_ident) || !word.ends_with(is_ident);
        starts && ends
    })
}

/// The number, from 1, of the line that byte `at` of `text` is in.
fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

fn is_ident(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
