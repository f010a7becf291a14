//! What a request claims: which bytes a sender would have signed, which signatures stand there, and of what time
//! it says it is. Read from a source's `verify` table by itself; checks no signature, since what a key signed
//! under this table is known from the good requests.

use toml::{Table, Value};

use super::text::{fields, items, json_at, scalar};
use super::wire::{Wire, blanks_off};

/// The fewest letters of a signature: a SHA-1 in base64 has 28.
const LETTERS_MIN: usize = 28;

/// A `verify` table, with what it leaves out filled in.
pub(crate) struct Scheme {
    table: Table,
    name: String,
    sets: Vec<Set>,
    also: Vec<String>,
    /// Places in JSON count only where the body is no form, and those of forms only where it is one.
    by_kind: bool,
    config: Table,
}

/// Where signature, time and id stand.
struct Set {
    signature: String,
    time: Option<String>,
    id: Option<String>,
}

/// One way of reading a request, or an item of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Claim {
    pub(crate) signed: Vec<u8>,
    /// Signatures as they can be told from other text.
    pub(crate) signatures: Vec<Vec<u8>>,
    pub(crate) time: Option<Vec<u8>>,
}

/// What of a body is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Covers {
    /// Every byte.
    Body,
    /// All fields of a form, however they are written.
    Fields,
    /// Some of it, or nothing.
    Part,
}

fn text<'t>(table: &'t Table, key: &str) -> Option<&'t str> {
    table.get(key)?.as_str()
}

fn list(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// A place of a header that is named without the word.
fn placed(names: Vec<String>) -> Vec<String> {
    let placed = names.into_iter().map(|name| if name.contains(':') { name } else { format!("header:{name}") });
    placed.collect()
}

impl Scheme {
    /// The scheme of a source's whole settings.
    pub(crate) fn of(source: &Table) -> Self {
        let mut table = source.get("verify").and_then(Value::as_table).cloned().unwrap_or_default();
        let config = source.get("config").and_then(Value::as_table).cloned().unwrap_or_default();
        let name = text(&table, "scheme").unwrap_or_default().to_owned();
        let mut or = |key: &str, value: &str| {
            let elsewhere = key == "header" && table.contains_key("from");
            if !table.contains_key(key) && !elsewhere {
                table.insert(key.to_owned(), value.into());
            }
        };
        match name.as_str() {
            "standard-webhooks" => {
                or("header", "webhook-signature");
                or("id", "webhook-id");
                or("timestamp", "header:webhook-timestamp");
                or("signed", "{id}.{timestamp}.{body}");
                or("window", "5m");
                or("encoding", "base64");
            }
            "contentful" => {
                or("header", "x-contentful-signature");
                or("timestamp", "header:x-contentful-timestamp");
                or("window", "30s");
                or("unit", "ms");
            }
            "basic" => or("header", "authorization"),
            _ => {}
        }
        or("signed", "{body}");
        or("unit", "s");
        or("encoding", "hex");
        let from = list(table.get("from"));
        let signatures = if from.is_empty() { placed(list(table.get("header"))) } else { from };
        let (times, ids) = (list(table.get("timestamp")), placed(list(table.get("id"))));
        let nth = |all: &[String], at: usize| all.get(at).or(all.last()).cloned();
        let set = |(at, signature): (usize, &String)| Set {
            signature: signature.clone(),
            time: nth(&times, at),
            id: nth(&ids, at),
        };
        let sets = signatures.iter().enumerate().map(set).collect();
        let written = table.to_string();
        let by_kind = written.contains("body:/") && written.contains("form:");
        Self { also: placed(list(table.get("also_header"))), name, sets, by_kind, table, config }
    }

    pub(crate) fn unit(&self) -> &str {
        text(&self.table, "unit").unwrap_or("s")
    }

    /// How far a stated time may lie off, to the past and to the future.
    pub(crate) fn window_ms(&self) -> Option<(i128, Option<i128>)> {
        let span = text(&self.table, "window")?;
        let digits = span.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let unit = match &span[digits.len()..] {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            other => panic!("a window in {other:?}"),
        };
        let window = digits.parse::<i128>().expect("a span") * unit;
        Some((window, (text(&self.table, "sides") != Some("past")).then_some(window)))
    }

    /// What a signature covers of the body.
    pub(crate) fn covers(&self) -> Covers {
        let signed = self.table.get("signed").map(ToString::to_string).unwrap_or_default();
        let has_any = |pieces: &[&str]| pieces.iter().any(|piece| signed.contains(piece));
        match self.name.as_str() {
            "contentful" | "jwt-es256" => Covers::Body,
            "http-signature" if self.table.to_string().contains("content-digest") => Covers::Body,
            "http-signature" | "token" | "basic" => Covers::Part,
            _ if has_any(&["{body}", "{body.sha256hex}", "{body.crc32}"]) => Covers::Body,
            _ if has_any(&["{form.sorted}", "{form.php}"]) => Covers::Fields,
            _ => Covers::Part,
        }
    }

    /// What the request claims: one list for each item that is signed by itself, any of whose claims may hold.
    /// `None` where something that has to be there is not.
    pub(crate) fn claims(&self, wire: &Wire) -> Option<Vec<Vec<Claim>>> {
        if !self.requirements_hold(wire) {
            return None;
        }
        let Some(each) = text(&self.table, "each") else { return Some(vec![self.claims_of(wire, None)]) };
        let (array, base) = each.strip_prefix("body:")?.split_once("/*")?;
        let items = items(json_at(&wire.body, array)?)?;
        if items.is_empty() {
            return None;
        }
        items.iter().map(|item| Some(self.claims_of(wire, Some(json_at(item, base)?)))).collect()
    }

    fn requirements_hold(&self, wire: &Wire) -> bool {
        let requirements = self.table.get("require").and_then(Value::as_array).cloned().unwrap_or_default();
        let hold = requirements.iter().filter_map(Value::as_table).all(|requirement| {
            let found = text(requirement, "from").and_then(|place| self.place(place, wire, None)).unwrap_or_default();
            let found = String::from_utf8_lossy(&found).into_owned();
            list(requirement.get("is")).iter().any(|pattern| fits(&self.configured(pattern), &found))
        });
        hold && self.body_hash_holds(wire)
    }

    fn configured(&self, text: &str) -> String {
        let values = self.config.iter().filter_map(|(name, value)| Some((name, value.as_str()?)));
        values.fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{config:{name}}}"), value))
    }

    fn body_hash_holds(&self, wire: &Wire) -> bool {
        use sha2::Digest as _;
        let Some(place) = text(&self.table, "body_hash").filter(|place| !place.starts_with("claim:")) else {
            return true;
        };
        match self.place(place, wire, None) {
            Some(stated) => stated.eq_ignore_ascii_case(hex::encode(sha2::Sha256::digest(&wire.body)).as_bytes()),
            None => wire.body.is_empty() || has_fields(wire),
        }
    }

    fn claims_of(&self, wire: &Wire, item: Option<&[u8]>) -> Vec<Claim> {
        match self.name.as_str() {
            "jwt-es256" => return self.jwt(wire).into_iter().collect(),
            "http-signature" => return super::message::claims(wire),
            _ => {}
        }
        let mut claims = Vec::new();
        for set in &self.sets {
            let mut texts = self.signature_texts(&set.signature, wire, item);
            texts.extend(self.also.iter().flat_map(|place| self.signature_texts(place, wire, item)));
            if texts.is_empty() {
                continue;
            }
            let signatures = texts.iter().flat_map(|text| self.signatures(text)).collect::<Vec<_>>();
            for time in self.times(set, &texts, wire, item) {
                for template in self.templates(wire, item) {
                    let id = set.id.as_ref().and_then(|place| self.place(place, wire, item));
                    let parts = Parts { wire, item, time: time.as_deref(), id, texts: &texts, set };
                    if let Some(signed) = self.signed(&template, &parts) {
                        claims.push(Claim { signed, signatures: signatures.clone(), time: time.clone() });
                    }
                }
            }
        }
        claims
    }

    fn signature_texts(&self, place: &str, wire: &Wire, item: Option<&[u8]>) -> Vec<Vec<u8>> {
        if let Some(stem) = place.strip_prefix("header:").and_then(|name| name.strip_suffix('*')) {
            let numbered = |name: &str| name.get(..stem.len()).is_some_and(|start| start.eq_ignore_ascii_case(stem));
            let named = wire.headers.iter().filter(|(name, _)| numbered(name));
            return named.map(|(_, value)| blanks_off(value).to_vec()).collect();
        }
        self.place(place, wire, item).into_iter().collect()
    }

    /// Everything in a text that can be a signature in this scheme's writing.
    fn signatures(&self, text: &[u8]) -> Vec<Vec<u8>> {
        match (self.name.as_str(), self.table.get("encoding").and_then(Value::as_str).unwrap_or("hex")) {
            ("token", _) => vec![text.to_vec()],
            ("basic", _) => {
                let word = text.split(|byte| *byte == b' ').next().unwrap_or_default();
                vec![blanks_off(&text[word.len()..]).to_vec()]
            }
            (_, "hex") => runs(text, u8::is_ascii_hexdigit).map(<[u8]>::to_ascii_lowercase).collect(),
            (_, "hex-lower") => runs(text, u8::is_ascii_hexdigit).map(<[u8]>::to_vec).collect(),
            (_, encoding) => {
                let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
                // padding belongs to the run before it
                let mut found: Vec<Vec<u8>> = runs(text, is_letter).map(<[u8]>::to_vec).collect();
                for run in &mut found {
                    let at =
                        text.windows(run.len()).position(|window| window == run.as_slice()).unwrap_or(0) + run.len();
                    let padding = text[at..].iter().take_while(|byte| **byte == b'=').count();
                    run.extend(std::iter::repeat_n(b'=', padding));
                }
                if encoding == "base64-hex" {
                    use base64::Engine as _;
                    let inner = |run: &Vec<u8>| base64::engine::general_purpose::STANDARD.decode(run).ok();
                    return found.iter().filter_map(inner).map(|run| run.to_ascii_lowercase()).collect();
                }
                found
            }
        }
    }

    fn times(&self, set: &Set, texts: &[Vec<u8>], wire: &Wire, item: Option<&[u8]>) -> Vec<Option<Vec<u8>>> {
        match set.time.as_deref() {
            None => vec![None],
            Some("first") => texts.iter().map(|text| Some(until(text, self.separator()))).collect(),
            Some(place) => match place.strip_prefix("pair:") {
                Some(name) => self.pairs(texts, name).map(Some).collect(),
                None => self.place(place, wire, item).map(Some).into_iter().collect(),
            },
        }
    }

    fn separator(&self) -> u8 {
        let format = self.table.get("format").and_then(Value::as_table);
        let layout = format.and_then(|format| format.values().next()).and_then(Value::as_table);
        layout.and_then(|layout| text(layout, "separator")).and_then(|text| text.bytes().next()).unwrap_or(b',')
    }

    fn pairs<'t>(&self, texts: &'t [Vec<u8>], name: &'t str) -> impl Iterator<Item = Vec<u8>> + 't {
        let separator = self.separator();
        let parts = texts.iter().flat_map(move |text| text.split(move |byte| *byte == separator || *byte == b' '));
        parts.filter_map(move |part| {
            blanks_off(part).strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec)
        })
    }

    fn templates(&self, wire: &Wire, item: Option<&[u8]>) -> Vec<String> {
        let signed = self.table.get("signed");
        let Some(by_field) = signed.and_then(Value::as_table) else { return list(signed) };
        let field = text(by_field, "from").and_then(|place| self.place(place, wire, item)).unwrap_or_default();
        let when = by_field.get("when").and_then(Value::as_table);
        list(when.and_then(|when| when.get(&*String::from_utf8_lossy(&field))))
    }

    /// The text at a place; `None` also where it stands there twice.
    fn place(&self, place: &str, wire: &Wire, item: Option<&[u8]>) -> Option<Vec<u8>> {
        let (kind, name) = place.split_once(':')?;
        let field = |form: &[u8]| {
            let mut named = fields(form).into_iter().filter(|(known, _)| known == name.as_bytes());
            named.next().map(|(_, value)| value).filter(|_| named.next().is_none())
        };
        let found = match kind {
            "header" => wire.value(name).map(<[u8]>::to_vec),
            "body" if self.by_kind && is_form(wire) => None,
            "form" if self.by_kind && !is_form(wire) => None,
            "body" => json_at(&wire.body, name).and_then(scalar),
            "item" => json_at(item?, name).and_then(scalar),
            "form" => field(&wire.body),
            "query" => field(query_of(wire).as_bytes()),
            other => panic!("a place {other:?}"),
        };
        found.filter(|text| !text.is_empty())
    }

    fn signed(&self, template: &str, parts: &Parts<'_>) -> Option<Vec<u8>> {
        match self.name.as_str() {
            "token" | "basic" => return Some(Vec::new()),
            "contentful" => return contentful(parts.wire),
            _ => {}
        }
        let mut out = Vec::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            out.extend_from_slice(before.as_bytes());
            let (piece, tail) = after.split_once('}')?;
            self.piece(piece, parts, &mut out)?;
            rest = tail;
        }
        out.extend_from_slice(rest.as_bytes());
        Some(out)
    }

    fn piece(&self, piece: &str, parts: &Parts<'_>, out: &mut Vec<u8>) -> Option<()> {
        let wire = parts.wire;
        match piece {
            // a sum stands for the whole body: who can change one without the other is found out
            "body" | "body.sha256hex" | "body.crc32" => out.extend_from_slice(&wire.body),
            "timestamp" => out.extend_from_slice(parts.time?),
            "id" => out.extend_from_slice(parts.id.as_ref()?),
            "method" => out.extend_from_slice(wire.method.as_bytes()),
            "url" | "target" => out.extend_from_slice(wire.target.as_bytes()),
            "path" => out.extend_from_slice(wire.target.split('?').next()?.as_bytes()),
            "url.hubspot" => out.extend_from_slice(hubspot(&wire.target).as_bytes()),
            // the same in every request of one source
            "secret" => out.extend_from_slice(b"{secret}"),
            "form.sorted" if !has_fields(wire) => {}
            "form.sorted" => {
                let mut all = fields(&wire.body);
                all.sort();
                all.dedup();
                all.iter().for_each(|(name, value)| out.extend_from_slice(&[&name[..], &value[..]].concat()));
            }
            "form.php" => {
                let own = parts.set.signature.strip_prefix("form:")?;
                let mut all = fields(&wire.body);
                all.retain(|(name, _)| name != own.as_bytes());
                all.sort();
                out.extend_from_slice(format!("{all:?}").as_bytes());
            }
            _ if piece.starts_with("config:") => out.extend_from_slice(piece.as_bytes()),
            _ => {
                if let Some(name) = piece.strip_prefix("sig:") {
                    out.extend_from_slice(&self.pairs(parts.texts, name).next()?);
                } else if let Some(names) = piece.strip_prefix("lines:") {
                    for name in names.split(',') {
                        let (name, optional) = name.strip_suffix('?').map_or((name, false), |name| (name, true));
                        match self.place(&format!("body:/{name}"), wire, None) {
                            Some(text) => out.extend_from_slice(&[name.as_bytes(), b"\n", &text, b"\n"].concat()),
                            None if optional => {}
                            None => return None,
                        }
                    }
                } else {
                    let (place, optional) = piece.strip_suffix('?').map_or((piece, false), |place| (place, true));
                    match self.place(place, wire, parts.item) {
                        Some(text) => out.extend_from_slice(&text),
                        None if optional => {}
                        None => return None,
                    }
                }
            }
        }
        Some(())
    }

    /// A JWT signs itself, and states the hash of the body that it came with.
    fn jwt(&self, wire: &Wire) -> Option<Claim> {
        use base64::Engine as _;
        let token = wire.value(text(&self.table, "header")?)?;
        let claims = token.split(|byte| *byte == b'.').nth(1)?;
        let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims).ok()?;
        let time = text(&self.table, "timestamp").and_then(|time| time.strip_prefix("claim:")).unwrap_or("iat");
        let time = json_at(&claims, &format!("/{time}")).and_then(scalar);
        Some(Claim { signed: wire.body.clone(), signatures: vec![token.to_vec()], time })
    }
}

struct Parts<'p> {
    wire: &'p Wire,
    item: Option<&'p [u8]>,
    time: Option<&'p [u8]>,
    id: Option<Vec<u8>>,
    texts: &'p [Vec<u8>],
    set: &'p Set,
}

fn until(text: &[u8], separator: u8) -> Vec<u8> {
    blanks_off(text.split(|byte| *byte == separator).next().unwrap_or_default()).to_vec()
}

/// The longest pieces of a text that are made of such letters.
fn runs(text: &[u8], is: impl Fn(&u8) -> bool) -> impl Iterator<Item = &[u8]> {
    text.split(move |byte| !is(byte)).filter(|run| run.len() >= LETTERS_MIN - 2)
}

pub(crate) fn query_of(wire: &Wire) -> &str {
    wire.target.split_once('?').map_or("", |(_, query)| query)
}

fn is_form(wire: &Wire) -> bool {
    let form = b"application/x-www-form-urlencoded";
    wire.values("content-type")
        .first()
        .is_some_and(|value| value.get(..form.len()).is_some_and(|start| start.eq_ignore_ascii_case(form)))
}

fn has_fields(wire: &Wire) -> bool {
    is_form(wire) || wire.values("content-type").is_empty()
}

fn hubspot(target: &str) -> String {
    let mut target = target.to_owned();
    for code in ["3A:", "2F/", "3F?", "40@", "21!", "24$", "27'", "28(", "29)", "2A*", "2C,", "3B;"] {
        let (code, letter) = code.split_at(2);
        target = target.replace(&format!("%{code}"), letter).replace(&format!("%{}", code.to_lowercase()), letter);
    }
    target
}

fn contentful(wire: &Wire) -> Option<Vec<u8>> {
    let listed = String::from_utf8_lossy(wire.value("x-contentful-signed-headers")?).to_lowercase();
    let mut names: Vec<&str> = listed.split(',').map(str::trim).collect();
    names.sort_unstable();
    let mut out = format!("{} {}\n", wire.method, wire.target).into_bytes();
    for name in names {
        out.extend_from_slice(&[name.as_bytes(), b":", wire.value(name)?, b"\n"].concat());
    }
    out.extend_from_slice(&wire.body);
    Some(out)
}

fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).filter(|at| rest.is_char_boundary(*at)).any(|at| fits(after, &rest[at..]))
        }),
    }
}
