//! Everything a stranger could do to a request, one small change at a time.

use super::wire::{Chance, Wire};

macro_rules! kinds {
    ($($kind:ident)*) => {
        /// A kind of change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Kind { $($kind),* }

        impl Kind {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$kind),*];
        }
    };
}

kinds! {
    BodyBit BodyInsert BodyDelete BodySwap BodyCut BodyExtended BodyPrefixed BodyOfAnother BodiesJoined BodyEmpty
    NumberHuge NumberChanged NestedDeep MemberTwice MemberFirst LetterEscaped LetterForeign PercentEscaped BlankAdded
    WrittenAnew ItemsSwapped ItemTwice NulByte LineEnds Packed PackedUnsaid
    HeaderDropped HeaderTwice HeaderTwiceOther HeaderRenamed HeaderUnderscored HeaderCase HeaderFolded HeaderLonger
    HeaderPrefixed HeaderBit HeaderInsert HeaderDelete HeaderCut HeaderEmpty HeaderBlanks HeaderNul HeaderForeign
    HeaderPercent HeaderOfAnother HeaderUnread HeadersSwapped HeaderHuge
    HexCase Base64Alphabet Base64Padding Base64Bits SignatureZero SignatureNone VersionLowered PrefixChanged
    SignaturesOfAnother ContentType ContentEncoding
    QueryAdded QueryDropped QueryTwice PathChanged TargetCase TargetPercent MethodChanged
    TimeShifted TimeFarOff TimeStated TimeExtreme BodyToHeader HeaderToBody
}

/// Where a stranger takes from what he puts in.
pub(crate) struct Loot<'l> {
    /// Another good request of the same sender.
    pub(crate) same: &'l Wire,
    /// A good request of somebody else.
    pub(crate) other: &'l Wire,
}

/// Makes one change; `false` where there is nothing to change.
pub(crate) fn change(kind: Kind, wire: &mut Wire, loot: &Loot<'_>, chance: &mut Chance) -> bool {
    let before = wire.clone();
    let number = kind as usize;
    if number <= Kind::PackedUnsaid as usize {
        super::mutate_body::change(kind, wire, loot, chance);
    } else if number <= Kind::ContentEncoding as usize {
        super::mutate_header::change(kind, wire, loot, chance);
    } else {
        around(kind, wire, chance);
    }
    *wire != before
}

fn around(kind: Kind, wire: &mut Wire, chance: &mut Chance) {
    match kind {
        Kind::QueryAdded => {
            let more = ["a=1", "token=x", "bodySHA256=00", "type=x", "&", "%00", "tenant=other"];
            let sign = if wire.target.contains('?') { '&' } else { '?' };
            wire.target = format!("{}{sign}{}", wire.target, chance.one(&more).unwrap_or(&""));
        }
        Kind::QueryDropped => wire.target = wire.target.split('?').next().unwrap_or_default().to_owned(),
        Kind::QueryTwice => {
            if let Some((_, query)) = wire.target.split_once('?') {
                wire.target = format!("{}&{query}", wire.target);
            }
        }
        Kind::PathChanged => {
            let (path, query) = wire.target.split_at(wire.target.find('?').unwrap_or(wire.target.len()));
            let other = ["/", "/other", "//", "/../in", "%2f", ";a"];
            wire.target = format!("{path}{}{query}", chance.one(&other).unwrap_or(&""));
        }
        Kind::TargetCase => {
            let letters = wire.target.char_indices().filter(|(_, letter)| letter.is_ascii_alphabetic());
            let places: Vec<usize> = letters.map(|(at, _)| at).collect();
            if let Some(&at) = chance.one(&places) {
                let other =
                    if wire.target.as_bytes()[at].is_ascii_lowercase() { str::to_uppercase } else { str::to_lowercase };
                wire.target.replace_range(at..=at, &other(&wire.target[at..=at]));
            }
        }
        Kind::TargetPercent => {
            let at = chance.below(wire.target.len());
            if let Some(letter) = wire.target.as_bytes().get(at).filter(|letter| letter.is_ascii()) {
                wire.target.replace_range(at..=at, &format!("%{letter:02X}"));
            }
        }
        Kind::MethodChanged => {
            wire.method =
                (*chance.one(&["GET", "PUT", "HEAD", "OPTIONS", "post", "PATCH", "X"]).unwrap_or(&"GET")).to_owned();
        }
        Kind::TimeShifted => {
            let seconds = [-700, -301, -299, -61, -5, -1, 1, 4, 29, 31, 59, 61, 179, 181, 299, 301, 599, 601];
            wire.now_ms = wire.now_ms.saturating_add(chance.one(&seconds).unwrap_or(&0) * 1000);
        }
        Kind::TimeFarOff => {
            let days = [-40_000, -366, -2, 2, 32, 366, 4_000, 200_000];
            wire.now_ms = wire.now_ms.saturating_add(chance.one(&days).unwrap_or(&0) * 86_400_000);
        }
        Kind::TimeExtreme => wire.now_ms = *chance.one(&[i64::MIN, -1, 0, 1, i64::MAX]).unwrap_or(&0),
        Kind::TimeStated => super::mutate_header::stated_time(wire, chance),
        Kind::BodyToHeader => super::mutate_header::over_the_edge(wire, true, chance),
        Kind::HeaderToBody => super::mutate_header::over_the_edge(wire, false, chance),
        _ => {}
    }
}
