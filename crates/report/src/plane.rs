//! The occupancy staircase as SVG: resident warps over registers per thread, with every candidate on it. Colours are
//! those of the page (CSS variables), so that it is light, dark and printed with it.

use std::fmt::Write;

/// A staircase: to each number of registers the warps that reside.
#[derive(Debug, Clone, Default)]
pub struct Stairs {
    /// Warps that an SM can hold.
    pub most_warps: u32,
    /// Registers that a thread can have.
    pub most_registers: u32,
    /// The most registers at which so many warps reside, and the warps.
    pub steps: Vec<(u32, u32)>,
}

/// A candidate.
#[derive(Debug, Clone)]
pub struct Point {
    /// Registers per thread.
    pub registers: u32,
    /// Resident warps per SM.
    pub warps: u32,
    /// What it is, for the tooltip.
    pub label: String,
    /// Time over the default's.
    pub time: Option<f64>,
    /// Is it the choice?
    pub is_chosen: bool,
    /// Is it the default build?
    pub is_default: bool,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 44.0;
const TOP: f64 = 14.0;
/// Half of a number of three digits, as large as it is on a narrow page.
const RIGHT: f64 = 20.0;
const BOTTOM: f64 = 38.0;

/// The picture; empty where there is nothing to show.
pub fn plane(stairs: &Stairs, points: &[Point]) -> String {
    if stairs.steps.is_empty() && points.is_empty() {
        return String::new();
    }
    let registers = points.iter().map(|p| p.registers);
    let registers = registers
        .chain([stairs.most_registers, 32])
        .max()
        .unwrap_or(1);
    let warps = points.iter().map(|p| p.warps);
    let warps = warps.chain([stairs.most_warps, 4]).max().unwrap_or(1);
    let x = |r: u32| LEFT + (WIDTH - LEFT - RIGHT) * f64::from(r) / f64::from(registers);
    let y = |w: u32| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - f64::from(w) / f64::from(warps));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plane\" role=\"img\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         aria-label=\"Resident warps over registers per thread: the occupancy staircase and the candidates\">"
    );
    for quarter in 0..=4_u32 {
        let w = warps * quarter / 4;
        let _ = write!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{w}</text>",
            WIDTH - RIGHT,
            y(w),
            y(w),
            LEFT - 6.0,
            y(w) + 4.0
        );
    }
    for r in (0..=registers).step_by(32) {
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{r}</text>",
            x(r),
            HEIGHT - BOTTOM + 16.0
        );
    }
    let _ = write!(
        out,
        "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">registers per thread</text>\
         <text class=\"axis\" x=\"12\" y=\"{:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 12 {:.1})\">resident warps</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 6.0,
        (TOP + HEIGHT - BOTTOM) / 2.0,
        (TOP + HEIGHT - BOTTOM) / 2.0
    );
    // From few registers to many: each stair is a level up to its last register.
    let mut steps = stairs.steps.clone();
    steps.sort_unstable();
    let mut path = String::new();
    let mut from = 0;
    for (regs, warps) in steps {
        let verb = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(
            path,
            "{verb}{:.1} {:.1} L{:.1} {:.1} ",
            x(from),
            y(warps),
            x(regs),
            y(warps)
        );
        from = regs;
    }
    if !path.is_empty() {
        let _ = write!(out, "<path class=\"stairs\" d=\"{}\"/>", path.trim_end());
    }
    // The choice and the default are drawn last, above the others.
    let mut order: Vec<&Point> = points.iter().collect();
    order.sort_by_key(|p| (p.is_chosen, p.is_default));
    for p in order {
        let class = match (p.is_chosen, p.is_default, p.time) {
            (true, ..) => "chosen",
            (_, true, _) => "default",
            (.., Some(time)) if time < 0.995 => "faster",
            _ => "slower",
        };
        let size = if p.is_chosen || p.is_default { 7 } else { 4 };
        let (x, y) = (x(p.registers), y(p.warps));
        let _ = write!(
            out,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{size}\"><title>{}</title></circle>",
            crate::svg::escape(&p.label)
        );
    }
    out + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_is_on_the_stairs() {
        let stairs = Stairs {
            most_warps: 64,
            most_registers: 255,
            steps: vec![(32, 64), (255, 8), (64, 32)],
        };
        let point = |registers, warps, is_chosen| Point {
            registers,
            warps,
            label: "a<b".into(),
            time: Some(0.9),
            is_chosen,
            is_default: false,
        };
        let svg = plane(&stairs, &[point(64, 32, true), point(32, 64, false)]);
        assert_eq!(svg.matches("<circle").count(), 2);
        assert_eq!(svg.matches("class=\"chosen\"").count(), 1);
        assert!(svg.contains("a&lt;b") && svg.ends_with("</svg>"));
        // Three levels, from few registers to many.
        let path = svg
            .split(" d=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        assert_eq!(path.matches('L').count(), 5);
        assert!(plane(&Stairs::default(), &[]).is_empty());
    }
}
