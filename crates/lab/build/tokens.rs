//! Rust source text as tokens: what decides what a program does, without comments, layout and tests.

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
    let chars: Vec<char> = text.chars().collect();
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(char) = chars.get(at) {
        let end = match char {
            _ if char.is_whitespace() => at + 1,
            '/' if chars.get(at + 1) == Some(&'/') => at + chars[at..].iter().take_while(|char| **char != '\n').count(),
            '"' | 'r' | 'b' | '\'' if quoted(&chars[at..]).is_some() => {
                let end = at + quoted(&chars[at..]).unwrap_or(1);
                found.push(Token::Text(chars[at..end].iter().collect()));
                end
            }
            _ if is_word(*char) => {
                let end = at + chars[at..].iter().take_while(|char| is_word(**char)).count();
                found.push(Token::Word(chars[at..end].iter().collect()));
                end
            }
            sign => {
                found.push(Token::Sign(*sign));
                at + 1
            }
        };
        at = end;
    }
    found
}

/// The length of the literal that begins here: a string, raw or not, or a character; `None` if none does.
fn quoted(chars: &[char]) -> Option<usize> {
    let prefix = chars.iter().take_while(|char| matches!(char, 'b' | 'r')).count();
    let raw = chars[..prefix].contains(&'r');
    let hashes = if raw { chars[prefix..].iter().take_while(|char| **char == '#').count() } else { 0 };
    let open = prefix + hashes;
    if prefix > 2 || !matches!(chars.get(open), Some('"' | '\'')) {
        return None;
    }
    if chars[open] == '\'' {
        // A lifetime is no character.
        let len = if chars.get(open + 1) == Some(&'\\') {
            (open + 3..).find(|at| chars.get(*at).is_none_or(|char| *char == '\''))? + 1
        } else {
            open + 3
        };
        return (!raw && chars.get(len - 1) == Some(&'\'')).then_some(len);
    }
    let mut at = open + 1;
    while let Some(char) = chars.get(at) {
        match char {
            '\\' if !raw => at += 1,
            '"' if chars[at + 1..].iter().take_while(|char| **char == '#').count() >= hashes => {
                return Some(at + 1 + hashes);
            }
            _ => {}
        }
        at += 1;
    }
    Some(chars.len())
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
