//! Rust source text as tokens: what decides what a program does, without comments, layout and tests.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A piece of source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// A name, a keyword or a number.
    Word(String),
    /// A text in quotes, as it is written.
    Text(String),
    /// Any other character.
    Sign(char),
}

impl Token {
    /// The name, if it is one.
    pub(crate) fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Whether it is this character.
    pub(crate) fn is(&self, sign: char) -> bool {
        *self == Self::Sign(sign)
    }

    /// Whether it is this word.
    pub(crate) fn says(&self, word: &str) -> bool {
        self.word() == Some(word)
    }
}

/// The tokens of a source text without its test modules.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    without_tests(&lex(text))
}

fn lex(text: &str) -> Vec<Token> {
    let stream: TokenStream = text.parse().unwrap_or_else(|error| panic!("Rust source text: {error}"));
    let mut found = Vec::new();
    add(stream, &mut found);
    found
}

fn add(stream: TokenStream, found: &mut Vec<Token>) {
    for tree in stream {
        match tree {
            TokenTree::Ident(name) => found.push(Token::Word(name.to_string())),
            TokenTree::Punct(sign) => found.push(Token::Sign(sign.as_char())),
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                found.push(if text.contains(['"', '\'']) { Token::Text(text) } else { Token::Word(text) });
            }
            TokenTree::Group(group) if is_doc(&group) => drop_hash(found),
            TokenTree::Group(group) => {
                let (open, close) = brackets(group.delimiter());
                found.extend(open.map(Token::Sign));
                add(group.stream(), found);
                found.extend(close.map(Token::Sign));
            }
        }
    }
}

fn brackets(delimiter: Delimiter) -> (Option<char>, Option<char>) {
    match delimiter {
        Delimiter::Parenthesis => (Some('('), Some(')')),
        Delimiter::Bracket => (Some('['), Some(']')),
        Delimiter::Brace => (Some('{'), Some('}')),
        Delimiter::None => (None, None),
    }
}

/// Whether it is what a comment for documentation stands for: `[doc = "..."]`.
fn is_doc(group: &Group) -> bool {
    let first = group.stream().into_iter().next();
    group.delimiter() == Delimiter::Bracket && matches!(first, Some(TokenTree::Ident(name)) if name == "doc")
}

/// Takes back the `#` or `#!` that stood before a comment for documentation.
fn drop_hash(found: &mut Vec<Token>) {
    found.pop_if(|token| token.is('!'));
    found.pop_if(|token| token.is('#'));
}

/// Leaves out modules that are compiled for tests only.
fn without_tests(all: &[Token]) -> Vec<Token> {
    let marker = lex("#[cfg(test)]");
    let mut kept = Vec::with_capacity(all.len());
    let mut at = 0;
    while at < all.len() {
        if all[at..].starts_with(&marker)
            && let Some(end) = module_end(all, at + marker.len())
        {
            at = end;
        } else {
            kept.push(all[at].clone());
            at += 1;
        }
    }
    kept
}

/// Where the module ends whose attributes begin here; `None` if it is no module.
fn module_end(all: &[Token], mut at: usize) -> Option<usize> {
    while all.get(at)?.is('#') {
        at = closed(all, at + 1)?;
    }
    if all.get(at)?.says("pub") {
        at += 1;
        if all.get(at)?.is('(') {
            at = closed(all, at)?;
        }
    }
    if !all.get(at)?.says("mod") {
        return None;
    }
    at += 2;
    if all.get(at)?.is(';') { Some(at + 1) } else { closed(all, at) }
}

/// Behind the bracket that closes the one that opens here.
pub(crate) fn closed(all: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in all.iter().enumerate().skip(open) {
        match token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']' | '}') => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}
