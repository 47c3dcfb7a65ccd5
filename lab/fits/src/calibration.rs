//! The calibration plot: how likely the correction says that a build is slower, and how often it was.

use std::fmt::Write;

const SIZE: f64 = 360.0;
const BORDER: f64 = 50.0;
/// Bins of the predicted probability.
const EDGES: [f64; 8] = [0.0, 0.03, 0.06, 0.1, 0.2, 0.35, 0.6, 1.0];

/// The plot as SVG, of predicted probabilities and whether each build was slower.
pub fn svg(points: &[(f64, bool)]) -> String {
    let place = |x: f64, y: f64| (BORDER + SIZE * x.sqrt(), BORDER + SIZE * (1.0 - y.sqrt()));
    let whole = SIZE + 2.0 * BORDER;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {whole} {whole}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"{whole}\" height=\"{whole}\" fill=\"white\"/>\n"
    );
    let mut line = |x: (f64, f64), y: (f64, f64), colour: &str| {
        let ((a, b), (c, d)) = (place(x.0, x.1), place(y.0, y.1));
        let _ = writeln!(
            text,
            "<line x1=\"{a:.1}\" y1=\"{b:.1}\" x2=\"{c:.1}\" y2=\"{d:.1}\" stroke=\"{colour}\"/>"
        );
    };
    line((0.0, 0.0), (1.0, 1.0), "#bbb");
    line((0.0, 0.0), (1.0, 0.0), "black");
    line((0.0, 0.0), (0.0, 1.0), "black");
    for tick in [0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0] {
        let ((x, low), (left, y)) = (place(tick, 0.0), place(0.0, tick));
        let percent = 100.0 * tick;
        let (below, beside) = (low + 16.0, left - 6.0);
        let _ = writeln!(
            text,
            "<text x=\"{x:.1}\" y=\"{below:.1}\" text-anchor=\"middle\">{percent:.0}</text>\n\
             <text x=\"{beside:.1}\" y=\"{:.1}\" text-anchor=\"end\">{percent:.0}</text>",
            y + 4.0
        );
    }
    for pair in EDGES.windows(2) {
        let inside =
            |&&(risk, _): &&(f64, bool)| pair[0] <= risk && (risk < pair[1] || pair[1] == 1.0);
        let some: Vec<_> = points.iter().filter(inside).collect();
        if some.is_empty() {
            continue;
        }
        let count = some.len() as f64;
        let predicted = some.iter().map(|p| p.0).sum::<f64>() / count;
        let slower = some.iter().filter(|p| p.1).count() as f64 / count;
        let (x, y) = place(predicted, slower);
        let radius = 2.0 + count.sqrt() / 3.0;
        let _ = writeln!(
            text,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" fill=\"#2a6\" fill-opacity=\"0.7\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\">{count}</text>",
            x + radius + 2.0,
            y - 2.0
        );
    }
    let middle = whole / 2.0;
    let _ = write!(
        text,
        "<text x=\"{middle}\" y=\"{:.0}\" text-anchor=\"middle\">predicted probability of being slower by 2%, percent</text>\n\
         <text x=\"14\" y=\"{middle}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {middle})\">builds that were, \
         percent</text>\n</svg>\n",
        whole - 14.0
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_all_points() {
        let points = [(0.01, false), (0.01, true), (0.5, true), (1.0, true)];
        let text = svg(&points);
        assert_eq!(text.matches("<circle").count(), 3);
        assert!(text.contains(">2</text>") && text.ends_with("</svg>\n"));
    }
}
