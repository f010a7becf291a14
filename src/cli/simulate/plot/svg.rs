//! A picture as one SVG file: readable as it is, in light and dark, with details on hover.

use std::fmt::Write as _;

use super::marks::{Mark, STYLE};
use super::{Band, DRAWN_MAX, Panel, Picture};

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 66.0;
const GAP: f64 = 34.0;
const LEGEND: f64 = 76.0;
/// Heights of a panel, in which its versions are spread.
const PANEL_MIN: f64 = 90.0;
const PANEL_MAX: f64 = 200.0;
const STEP: f64 = 15.0;
/// Room for one version's label.
const LABEL: f64 = 13.0;
/// The most characters of a version's label and of a name.
const LABEL_CHARS_MAX: usize = 13;
const NAME_CHARS_MAX: usize = 60;
/// Rows of names of faults, how high each is, and the room for a name, by characters.
const LANES_MAX: usize = 5;
const LANE: f64 = 13.0;
const LANE_CHAR: f64 = 5.6;

/// Draws the picture.
pub(in super::super) fn draw(picture: &Picture) -> String {
    let heights: Vec<f64> = picture.panels.iter().map(height).collect();
    let body: f64 = heights.iter().map(|height| height + GAP).sum();
    let scale = Scale::of(picture.until_ms);
    let lanes = lanes(picture, &scale);
    let above = TOP + lanes.iter().map(|(lane, _)| lane + 1).max().unwrap_or(0) as f64 * LANE + 20.0;
    let total = above + body.max(GAP) + LEGEND;
    let mut svg = String::new();
    // Writing to a text cannot fail.
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {total}\" width=\"{WIDTH}\" \
         height=\"{total}\" role=\"img\" aria-label=\"{}\">\n<style>{STYLE}</style>\n\
         <rect width=\"{WIDTH}\" height=\"{total}\" fill=\"var(--paper)\"/>\n<defs>",
        safe(&format!("{}: arrival time against version", picture.title))
    );
    for mark in Mark::ALL {
        let _ = write!(svg, "<path id=\"{0}\" class=\"{0}\" d=\"{1}\"/>", mark.class(), mark.path());
    }
    svg.push_str("</defs>\n");
    head(&mut svg, picture);
    draw_lanes(&mut svg, picture, &scale, &lanes);
    let mut top = above;
    for (panel, height) in picture.panels.iter().zip(&heights) {
        for band in &picture.bands {
            let (from, until) = (scale.x(band.from_ms), scale.x(band.until_ms));
            let width = round((until - from).max(1.5));
            let _ =
                write!(svg, "<rect class=\"band\" x=\"{from}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"/>");
        }
        draw_panel(&mut svg, panel, &scale, top, *height);
        top += height + GAP;
    }
    axis(&mut svg, &scale, top - GAP);
    legend(&mut svg, picture, top - GAP + 40.0);
    svg.push_str("</svg>\n");
    svg
}

fn height(panel: &Panel) -> f64 {
    (f64::from(panel.height) * STEP + 16.0).clamp(PANEL_MIN, PANEL_MAX)
}

/// Time to places across.
struct Scale {
    until_ms: f64,
    ticks: Vec<u64>,
}

impl Scale {
    fn of(until_ms: u64) -> Self {
        let until_ms = until_ms.saturating_add(until_ms / 50 + 1);
        let step = step(until_ms);
        Self { until_ms: until_ms as f64, ticks: (0..=until_ms / step).map(|tick| tick * step).collect() }
    }

    fn x(&self, at_ms: u64) -> f64 {
        let across = at_ms as f64 / self.until_ms;
        round(LEFT + across.min(1.0) * (WIDTH - LEFT - RIGHT))
    }
}

/// A step of 1, 2 or 5 with zeros that divides the time into some ten parts.
fn step(until_ms: u64) -> u64 {
    let steps = (0..18).flat_map(|zeros| [1, 2, 5].map(|digit| digit * 10_u64.pow(zeros)));
    steps.into_iter().find(|step| until_ms / step <= 10).unwrap_or(1)
}

fn round(place: f64) -> f64 {
    (place * 10.0).round() / 10.0
}

fn head(svg: &mut String, picture: &Picture) {
    let verdict = if picture.passed { "everything held" } else { "FAILED" };
    let facts: Vec<String> = picture.facts.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let _ = write!(
        svg,
        "<text x=\"18\" y=\"28\" class=\"title\">{}</text>\n<text x=\"18\" y=\"48\" class=\"soft\">{}</text>\n",
        safe(&format!("{}: {verdict}", picture.title)),
        safe(&facts.join(" · "))
    );
}

/// The row of each fault's name, where there is room for it, and its place across.
fn lanes(picture: &Picture, scale: &Scale) -> Vec<(usize, f64)> {
    let mut ends = [f64::NEG_INFINITY; LANES_MAX];
    let mut placed = Vec::with_capacity(picture.bands.len());
    for band in &picture.bands {
        let room = name_of(band).len() as f64 * LANE_CHAR + 10.0;
        let x = scale.x(band.from_ms).min(WIDTH - RIGHT - room);
        // Where every row is taken, the last one shows a bar without its name.
        let lane = ends.iter().position(|end| *end <= x).unwrap_or(LANES_MAX);
        if let Some(end) = ends.get_mut(lane) {
            *end = x + room;
        }
        placed.push((lane, x));
    }
    placed
}

fn name_of(band: &Band) -> String {
    band.node.map_or_else(|| band.what.to_owned(), |node| format!("{} of node {node}", band.what))
}

fn draw_lanes(svg: &mut String, picture: &Picture, scale: &Scale, lanes: &[(usize, f64)]) {
    if picture.bands.is_empty() {
        return;
    }
    let _ = writeln!(
        svg,
        "<text class=\"small\" text-anchor=\"end\" x=\"{}\" y=\"{}\">faults</text>",
        LEFT - 8.0,
        TOP + 10.0
    );
    for (band, (lane, x)) in picture.bands.iter().zip(lanes) {
        let top = TOP + *lane as f64 * LANE;
        let (from, until) = (scale.x(band.from_ms), scale.x(band.until_ms));
        let (width, tip) = (round((until - from).max(1.5)), safe(&name_of(band)));
        let _ = write!(
            svg,
            "<rect class=\"band\" x=\"{from}\" y=\"{top}\" width=\"{width}\" height=\"{}\"><title>{tip}</title></rect>",
            LANE - 2.0
        );
        if *lane < LANES_MAX {
            let _ = write!(svg, "<text class=\"small\" x=\"{}\" y=\"{}\">{tip}</text>", round(x + 2.0), top + 9.0);
        }
    }
    svg.push('\n');
}

fn draw_panel(svg: &mut String, panel: &Panel, scale: &Scale, top: f64, height: f64) {
    let bottom = top + height;
    let y = |version: u32| {
        let share = (f64::from(version) - 0.5) / f64::from(panel.height.max(1));
        round(bottom - 8.0 - share * (height - 16.0))
    };
    let _ = writeln!(
        svg,
        "<text class=\"name\" x=\"{LEFT}\" y=\"{}\">{}<tspan class=\"soft\" font-weight=\"400\" dx=\"8\">{}</tspan></text>",
        top - 6.0,
        safe(&short(&panel.name, NAME_CHARS_MAX)),
        safe(&format!("policy {}, {}", panel.policy, short(&panel.ends, NAME_CHARS_MAX)))
    );
    for tick in &scale.ticks {
        let x = scale.x(*tick);
        let _ = write!(svg, "<path class=\"grid\" d=\"M{x},{top}V{bottom}\"/>");
    }
    let _ = writeln!(svg, "<path class=\"grid\" d=\"M{LEFT},{bottom}H{}\"/>", WIDTH - RIGHT);
    let mut free = f64::INFINITY;
    for (version, label) in &panel.versions {
        let place = y(*version);
        if place <= free - LABEL {
            let label = safe(&short(label, LABEL_CHARS_MAX));
            let _ = write!(
                svg,
                "<text class=\"small\" text-anchor=\"end\" x=\"{}\" y=\"{}\">{label}</text>",
                LEFT - 8.0,
                place + 3.5
            );
            free = place;
        }
    }
    svg.push('\n');
    for hold in &panel.holds {
        let place = y(hold.height);
        let _ =
            write!(svg, "<path class=\"hold\" d=\"M{},{place}H{}\"/>", scale.x(hold.from_ms), scale.x(hold.until_ms));
    }
    for lag in &panel.lags {
        let (from, until, place) = (scale.x(lag.from_ms), scale.x(lag.until_ms), y(lag.height));
        if until - from > 3.0 {
            let _ = write!(svg, "<path class=\"lag\" d=\"M{from},{place}H{until}\"/>");
        }
    }
    if let Some(((first_ms, first), more)) = panel.state.split_first() {
        let _ = write!(svg, "<path class=\"state\" d=\"M{},{}", scale.x(*first_ms), y(*first));
        for (at_ms, version) in more {
            let _ = write!(svg, "H{}V{}", scale.x(*at_ms), y(*version));
        }
        let _ = writeln!(svg, "H{}\"/>", WIDTH - RIGHT);
    }
    // What applied lies on top.
    for late in [false, true] {
        for point in panel.points.iter().filter(|point| (point.mark == Mark::Applied) == late) {
            let (x, place, id) = (scale.x(point.at_ms), y(point.height), point.mark.class());
            let text = safe(&format!("{} at {}", point.text, super::super::report::seconds(point.at_ms)));
            let _ = write!(svg, "<use href=\"#{id}\" x=\"{x}\" y=\"{place}\"><title>{text}</title></use>");
        }
    }
    svg.push('\n');
}

fn axis(svg: &mut String, scale: &Scale, bottom: f64) {
    for tick in &scale.ticks {
        let whole = scale.ticks.iter().all(|tick| tick % 1_000 == 0);
        let label = if whole { format!("{} s", tick / 1_000) } else { format!("{tick} ms") };
        let x = scale.x(*tick);
        let _ =
            write!(svg, "<text class=\"soft\" text-anchor=\"middle\" x=\"{x}\" y=\"{}\">{label}</text>", bottom + 16.0);
    }
    svg.push('\n');
}

fn legend(svg: &mut String, picture: &Picture, top: f64) {
    let mut x = LEFT;
    for mark in Mark::ALL.into_iter().filter(|mark| shows(picture, *mark)) {
        let _ = write!(
            svg,
            "<use href=\"#{}\" x=\"{x}\" y=\"{top}\"/><text class=\"soft\" x=\"{}\" y=\"{}\">{}</text>",
            mark.class(),
            x + 10.0,
            top + 4.0,
            mark.word()
        );
        x += 34.0 + mark.word().len() as f64 * 6.2;
    }
    let _ = write!(
        svg,
        "<path class=\"state\" d=\"M{x},{top}h22\"/><text class=\"soft\" x=\"{}\" y=\"{}\">version of the state</text>",
        x + 28.0,
        top + 4.0
    );
    x += 150.0;
    if picture.panels.iter().any(|panel| !panel.holds.is_empty()) {
        let _ = write!(
            svg,
            "<path class=\"hold\" d=\"M{x},{top}h22\"/><text class=\"soft\" x=\"{}\" y=\"{}\">waits</text>",
            x + 28.0,
            top + 4.0
        );
        x += 74.0;
    }
    if !picture.bands.is_empty() {
        let _ = write!(
            svg,
            "<rect class=\"band\" x=\"{x}\" y=\"{}\" width=\"22\" height=\"12\"/><text class=\"soft\" x=\"{}\" y=\"{}\">something is broken</text>",
            top - 6.0,
            x + 28.0,
            top + 4.0
        );
    }
    let more = match picture.left_out {
        0 => String::new(),
        more => format!(" {more} more resources are not drawn (at most {DRAWN_MAX}; --resource NAME picks)."),
    };
    let _ = write!(
        svg,
        "\n<text class=\"small\" x=\"{LEFT}\" y=\"{}\">Across: when a request reached the gate. Up: the event's version, newest on top.{}</text>\n",
        top + 24.0,
        safe(&more)
    );
}

fn shows(picture: &Picture, mark: Mark) -> bool {
    picture.panels.iter().any(|panel| panel.points.iter().any(|point| point.mark == mark))
}

fn short(text: &str, most: usize) -> String {
    crate::config::redact::printable(text, most)
}

/// A text that is a text in XML too.
pub(super) fn safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in crate::config::redact::printable(text, 400).chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for until_ms in [1, 9, 87, 1_234, 20_400, 61_000, 3_600_000, 86_400_000] {
            let ticks = Scale::of(until_ms).ticks;
            assert!((2..=12).contains(&ticks.len()), "{until_ms}: {ticks:?}");
        }
        assert_eq!(step(20_000), 2_000);
    }

    #[test]
    fn a_text_cannot_become_markup() {
        assert_eq!(safe("<b a=\"&\">\u{202e}"), "&lt;b a=&quot;&amp;&quot;&gt;\\u{202e}");
    }
}
