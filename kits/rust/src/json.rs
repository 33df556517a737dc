//! As much JSON as lines of the protocol take: flat objects of texts, integers and lists of these.

use std::fmt::Write;

/// A value of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An integer.
    Number(i64),
    /// A text.
    Text(String),
    /// A list of texts or integers.
    List(Vec<Value>),
}

/// The fields of a line, in its order.
pub type Fields = Vec<(String, Value)>;

/// The value of a field.
pub fn get<'a>(fields: &'a Fields, name: &str) -> Option<&'a Value> {
    fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
}

/// An integer field.
pub fn number(fields: &Fields, name: &str) -> Option<i64> {
    match get(fields, name) {
        Some(Value::Number(number)) => Some(*number),
        _ => None,
    }
}

/// A text field, or an empty text.
pub fn text<'a>(fields: &'a Fields, name: &str) -> &'a str {
    match get(fields, name) {
        Some(Value::Text(text)) => text,
        _ => "",
    }
}

/// A field that is a list.
pub fn list<'a>(fields: &'a Fields, name: &str) -> &'a [Value] {
    match get(fields, name) {
        Some(Value::List(list)) => list,
        _ => &[],
    }
}

/// Write a text with its quotes.
pub fn quote(into: &mut String, text: &str) {
    into.push('"');
    for one in text.chars() {
        match one {
            '"' | '\\' => {
                into.push('\\');
                into.push(one);
            }
            one if (one as u32) < 0x20 => write!(into, "\\u{:04x}", one as u32).expect("into a text"),
            one => into.push(one),
        }
    }
    into.push('"');
}

/// Read a line. Panics if it is not a flat object, because the driver writes nothing else.
pub fn read(line: &str) -> Fields {
    let mut reader = Reader { rest: line.trim() };
    let mut fields = Fields::new();
    reader.expect('{');
    while !reader.comes('}') {
        reader.comes(',');
        let name = reader.text();
        reader.expect(':');
        fields.push((name, reader.value()));
    }
    fields
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn comes(&mut self, one: char) -> bool {
        self.rest = self.rest.trim_start();
        let there = self.rest.starts_with(one);
        if there {
            self.rest = &self.rest[one.len_utf8()..];
        }
        there
    }

    fn expect(&mut self, one: char) {
        assert!(self.comes(one), "expected {one} at {}", self.rest);
    }

    fn value(&mut self) -> Value {
        if self.comes('[') {
            let mut list = Vec::new();
            while !self.comes(']') {
                self.comes(',');
                list.push(self.value());
            }
            return Value::List(list);
        }
        self.rest = self.rest.trim_start();
        if self.rest.starts_with('"') {
            return Value::Text(self.text());
        }
        let ends = self.rest.find([',', '}', ']']).expect("an object ends");
        let (number, rest) = self.rest.split_at(ends);
        self.rest = rest;
        Value::Number(number.trim().parse().expect("an integer"))
    }

    fn text(&mut self) -> String {
        self.expect('"');
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        loop {
            let (at, one) = chars.next().expect("a text ends");
            match one {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return text;
                }
                '\\' => match chars.next().expect("a text ends").1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    'u' => {
                        let code: String = chars.by_ref().take(4).map(|(_, digit)| digit).collect();
                        let code = u32::from_str_radix(&code, 16).expect("four digits");
                        text.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                    }
                    other => text.push(other),
                },
                one => text.push(one),
            }
        }
    }
}
