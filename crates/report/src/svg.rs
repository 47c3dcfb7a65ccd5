//! Plots as SVG text: horizontal bars per kernel, and a curve over instructions.

use std::fmt::Write;

/// One series of a bar plot: its name and colour.
#[derive(Debug, Clone, Copy)]
pub struct Series {
    /// Name in the legend.
    pub name: &'static str,
    /// CSS colour.
    pub colour: &'static str,
}

/// Horizontal bars: for each row one bar per series, all on one scale that starts at 0, with a
/// line at 1. Values that are absent are left out.
pub fn bars(title: &str, series: &[Series], rows: &[(String, Vec<Option<f64>>)]) -> String {
    const LEFT: f64 = 150.0;
    const WIDTH: f64 = 560.0;
    const BAR: f64 = 9.0;
    let group = BAR * series.len() as f64 + 8.0;
    let height = 60.0 + group * rows.len() as f64;
    let most = rows
        .iter()
        .flat_map(|r| r.1.iter().flatten())
        .fold(1.0f64, |a, &b| a.max(b));
    let scale = WIDTH / (most * 1.08);
    let mut out = open(LEFT + WIDTH + 60.0, height);
    text(
        &mut out,
        LEFT,
        16.0,
        "start",
        &format!("<tspan font-weight=\"bold\">{}</tspan>", escape(title)),
    );
    let mut x = LEFT;
    for s in series {
        let _ = write!(
            out,
            "<rect x=\"{x}\" y=\"24\" width=\"9\" height=\"9\" fill=\"{}\"/>",
            s.colour
        );
        text(&mut out, x + 13.0, 32.0, "start", &escape(s.name));
        x += 26.0 + 6.5 * s.name.len() as f64;
    }
    for (i, (name, values)) in rows.iter().enumerate() {
        let top = 44.0 + group * i as f64;
        text(
            &mut out,
            LEFT - 6.0,
            top + group / 2.0,
            "end",
            &escape(name),
        );
        for (j, (value, s)) in values.iter().zip(series).enumerate() {
            let Some(value) = value else { continue };
            let y = top + BAR * j as f64;
            let _ = write!(
                out,
                "<rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
                value * scale,
                BAR - 1.0,
                s.colour
            );
            text(
                &mut out,
                LEFT + value * scale + 4.0,
                y + 7.5,
                "start",
                &format!("{value:.2}"),
            );
        }
    }
    let one = LEFT + scale;
    let _ = write!(
        out,
        "<line x1=\"{one:.1}\" y1=\"40\" x2=\"{one:.1}\" y2=\"{:.1}\" stroke=\"#444\" stroke-dasharray=\"3 3\"/></svg>",
        height - 8.0
    );
    out
}

/// A point of a curve that leads somewhere: its index, what it is, and the anchor.
#[derive(Debug, Clone)]
pub struct Mark {
    /// In values.
    pub at: usize,
    /// For the tooltip, and for who hears the page.
    pub label: String,
    /// Of the page.
    pub anchor: String,
}

/// A step curve of whole numbers for the page, with its maximum marked on the axis, and with links.
pub fn curve(values: &[u64], marks: &[Mark]) -> String {
    const WIDTH: f64 = 760.0;
    const HEIGHT: f64 = 160.0;
    let top = values.iter().copied().max().unwrap_or(0).max(1) as f64;
    let step = WIDTH / values.len().max(1) as f64;
    // What holds links is no image to those who hear it.
    let role = if marks.is_empty() { "img" } else { "group" };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"curve\" role=\"{role}\" viewBox=\"0 0 {:.0} {:.0}\" \
         aria-label=\"Registers needed at each instruction\">",
        WIDTH + 50.0,
        HEIGHT + 20.0
    );
    let mut path = format!("M40 {:.1}", HEIGHT + 5.0);
    for (i, &value) in values.iter().enumerate() {
        let y = 5.0 + HEIGHT * (1.0 - value as f64 / top);
        let _ = write!(
            path,
            " L{:.1} {y:.1} L{:.1} {y:.1}",
            40.0 + step * i as f64,
            40.0 + step * (i + 1) as f64
        );
    }
    let _ = write!(path, " L{:.1} {:.1} Z", 40.0 + WIDTH, HEIGHT + 5.0);
    let _ = write!(out, "<path class=\"area\" d=\"{path}\"/>");
    for mark in marks {
        let Some(&value) = values.get(mark.at) else {
            continue;
        };
        let _ = write!(
            out,
            "<a href=\"#{}\" aria-label=\"{}\"><circle class=\"peak\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\"><title>{}</title></circle></a>",
            escape(&mark.anchor),
            escape(&mark.label),
            40.0 + step * (mark.at as f64 + 0.5),
            5.0 + HEIGHT * (1.0 - value as f64 / top),
            escape(&mark.label)
        );
    }
    text(&mut out, 36.0, 16.0, "end", &format!("{top}"));
    text(&mut out, 36.0, HEIGHT + 5.0, "end", "0");
    out.push_str("</svg>");
    out
}

fn open(width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"10\" fill=\"#222\">\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
    )
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, inner: &str) {
    let _ = write!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{inner}</text>"
    );
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_absent_values_left_out() {
        let series = [
            Series {
                name: "a",
                colour: "red",
            },
            Series {
                name: "b",
                colour: "blue",
            },
        ];
        let plot = bars("t", &series, &[("x<y".into(), vec![Some(1.5), None])]);
        assert!(plot.contains("x&lt;y") && plot.contains("1.50"));
        assert_eq!(plot.matches("fill=\"blue\"").count(), 1, "only the legend");
    }

    #[test]
    fn an_empty_curve_is_still_a_picture() {
        assert!(curve(&[], &[]).ends_with("</svg>"));
        let mark = |at| Mark {
            at,
            label: "a \"peak\"".into(),
            anchor: "k-peak".into(),
        };
        let drawn = curve(&[1, 3, 2], &[mark(1), mark(9)]);
        assert!(drawn.contains(">3</text>"));
        assert_eq!(drawn.matches("href=\"#k-peak\"").count(), 1);
        assert!(drawn.contains("a &quot;peak&quot;"));
        assert!(drawn.contains("role=\"group\"") && curve(&[1], &[]).contains("role=\"img\""));
    }
}
