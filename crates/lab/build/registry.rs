//! The table of a registry of algorithms: which modules of the crate each of its rows reaches.

use std::collections::{BTreeMap, BTreeSet};

use crate::tokens::{Token, closed};

/// The table of a registry, and what stands beside it in its file.
#[derive(Debug)]
pub(crate) struct Table {
    rows: BTreeMap<String, Vec<Token>>,
    /// Functions, constants and the like, by name.
    items: BTreeMap<String, Vec<Token>>,
    /// Modules by their names, and by what is imported from them.
    imported: BTreeMap<String, BTreeSet<String>>,
}

impl Table {
    /// Reads the file that has the table in it.
    pub(crate) fn read(file: &[Token], modules: &BTreeSet<&str>) -> Self {
        let itself = |name: &&str| ((*name).to_owned(), BTreeSet::from([(*name).to_owned()]));
        let mut imported: BTreeMap<String, BTreeSet<String>> = modules.iter().map(itself).collect();
        let mut items: BTreeMap<String, Vec<Token>> = BTreeMap::new();
        for (index, item) in split(file).into_iter().enumerate() {
            let words = || item.iter().filter_map(Token::word);
            if words().find(|word| !["pub", "crate", "super"].contains(word)) == Some("use") {
                let from: BTreeSet<String> = words().filter(|word| modules.contains(word)).map(str::to_owned).collect();
                for word in words() {
                    imported.entry(word.to_owned()).or_default().extend(from.clone());
                }
            } else {
                let name = name(item).map_or(index.to_string(), str::to_owned);
                items.entry(name).or_default().extend_from_slice(item);
            }
        }
        let table = items.remove("ALGORITHMS").expect("a registry has a table of ALGORITHMS");
        Self { rows: rows(&table), items, imported }
    }

    /// The modules that each row reaches, by the algorithm's name.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&String, BTreeSet<String>)> {
        self.rows.iter().map(|(name, row)| (name, self.reached(row).0))
    }

    /// The modules that are reached from the table's file, but not by a row.
    pub(crate) fn beside_rows(&self) -> BTreeSet<String> {
        let theirs: BTreeSet<String> = self.rows.values().flat_map(|row| self.reached(row).1).collect();
        let rest = self.items.iter().filter(|(name, _)| !theirs.contains(*name));
        rest.flat_map(|(_, item)| self.reached(item).0).collect()
    }

    /// What a text reaches: modules by name or by what is imported from them, and items beside the table, through which more
    /// is reached.
    fn reached(&self, text: &[Token]) -> (BTreeSet<String>, BTreeSet<String>) {
        let (mut modules, mut items, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![text]);
        while let Some(tokens) = open.pop() {
            for (at, token) in tokens.iter().enumerate() {
                let Some(word) = token.word() else { continue };
                let item = self.items.get(word);
                if let Some(item) = item
                    && items.insert(word.to_owned())
                {
                    open.push(item);
                }
                // A function beside the table may be called like a module.
                if item.is_none() || !tokens.get(at + 1).is_some_and(|next| next.is('(')) {
                    modules.extend(self.imported.get(word).into_iter().flatten().cloned());
                }
            }
        }
        (modules, items)
    }
}

/// The items of a file.
fn split(file: &[Token]) -> Vec<&[Token]> {
    let (mut items, mut from, mut at) = (Vec::new(), 0, 0);
    while at < file.len() {
        let opens = matches!(file[at], Token::Sign('(' | '[' | '{'));
        let end = if opens { closed(file, at).unwrap_or(file.len()) } else { at + 1 };
        let body = file[at].is('{') && !file.get(end).is_some_and(|next| next.is(';'));
        if body || file[at].is(';') || end == file.len() {
            items.push(&file[from..end]);
            from = end;
        }
        at = end;
    }
    items
}

/// What an item is called.
fn name(item: &[Token]) -> Option<&str> {
    const KINDS: [&str; 7] = ["fn", "const", "static", "type", "struct", "enum", "trait"];
    let kind = item.iter().position(|token| KINDS.iter().any(|kind| token.says(kind)))?;
    item[kind..].iter().filter_map(Token::word).find(|word| !KINDS.contains(word))
}

/// The rows of a table by the algorithm's name: the first text in each call, or each struct, at its top.
fn rows(table: &[Token]) -> BTreeMap<String, Vec<Token>> {
    let equals = table.iter().position(|token| token.is('=')).unwrap_or(0);
    let open = (equals..table.len()).find(|at| table[*at].is('[')).unwrap_or(table.len());
    let mut rows = BTreeMap::new();
    let mut at = open + 1;
    while at < table.len() {
        if !matches!(table[at], Token::Sign('(' | '{')) {
            at += 1;
            continue;
        }
        let end = closed(table, at).unwrap_or(table.len());
        let row = &table[at..end];
        let text =
            |token: &Token| if let Token::Text(text) = token { Some(text.trim_matches('"').to_owned()) } else { None };
        if let Some(name) = row.iter().find_map(text) {
            rows.insert(name, row.to_vec());
        }
        at = end;
    }
    rows
}
