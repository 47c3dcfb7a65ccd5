//! The O'Hara-Rudy human ventricular cell (2011, supplement), endocardial, advanced like the
//! kernel: gates exactly at constant voltage (Rush-Larsen) before the currents are taken, all other
//! variables by forward Euler from the values at the step's beginning, except that the release
//! fluxes see the new calcium current. The exchanger's cycle is
//! solved as a linear system.

use rayon::prelude::*;

use crate::data::{Data, Output, floats};

const STATES: usize = 41;

const R: f64 = 8314.0;
const T: f64 = 310.0;
const F: f64 = 96485.0;
const NAO: f64 = 140.0;
const CAO: f64 = 1.8;
const KO: f64 = 5.4;
/// What the model takes for the circle's constant.
#[allow(clippy::approx_constant)]
const PI: f64 = 3.14;

/// Storage order of the state.
#[derive(Clone, Copy)]
#[rustfmt::skip]
enum S {
    V, Nai, Nass, Ki, Kss, Cai, Cass, Cansr, Cajsr,
    M, Hf, Hs, J, Hsp, Jp, Ml, Hl, Hlp,
    A, If, Is, Ap, Ifp, Isp,
    D, Ff, Fs, Fcaf, Fcas, Jca, Nca, Ffp, Fcafp,
    Xrf, Xrs, Xs1, Xs2, Xk1,
    Jrel, Jrelp, Camkt,
}
use S::*;

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + x.exp())
}

/// Rate constants add: `1 / (a exp(p) + b exp(q))`.
fn period(a: f64, p: f64, b: f64, q: f64) -> f64 {
    1.0 / (a * p.exp() + b * q.exp())
}

/// Steady state and time constant (ms) of every gate at voltage `v`.
#[rustfmt::skip]
fn gates(v: f64) -> [(S, f64, f64); 28] {
    let tm = period(6.765, (v + 11.64) / 34.77, 8.552, -(v + 77.42) / 5.955);
    let h = sigmoid((v + 82.90) / 6.086);
    let thf = period(1.432e-5, -(v + 1.196) / 6.285, 6.149, (v + 0.5096) / 20.27);
    let ths = period(0.009794, -(v + 17.95) / 28.05, 0.3343, (v + 5.730) / 56.66);
    let tj = 2.038 + period(0.02136, -(v + 100.6) / 8.281, 0.3052, (v + 0.9941) / 38.45);
    let ta = 1.0515 / (sigmoid(-(v - 18.4099) / 29.3814) / 1.2089 + 3.5 * sigmoid((v + 100.0) / 29.3814));
    let i = sigmoid((v + 43.94) / 5.711);
    let tif = 4.562 + period(0.3933, -(v + 100.0) / 100.0, 0.08004, (v + 50.0) / 16.59);
    let tis = 23.62 + period(0.001416, -(v + 96.52) / 59.05, 1.780e-8, (v + 114.1) / 8.079);
    let slow = (1.354 + 1e-4 * period(1.0, (v - 167.4) / 15.89, 1.0, -(v - 12.23) / 0.2154))
        * (1.0 - 0.5 * sigmoid((v + 70.0) / 20.0));
    let f = sigmoid((v + 19.58) / 3.696);
    let tff = 7.0 + period(0.0045, -(v + 20.0) / 10.0, 0.0045, (v + 20.0) / 10.0);
    let tfs = 1000.0 + period(0.000035, -(v + 5.0) / 4.0, 0.000035, (v + 5.0) / 6.0);
    let tfcaf = 7.0 + period(0.04, -(v - 4.0) / 7.0, 0.04, (v - 4.0) / 7.0);
    let tfcas = 100.0 + period(0.00012, -v / 3.0, 0.00012, v / 7.0);
    let xr = sigmoid(-(v + 8.337) / 6.789);
    let xs = sigmoid(-(v + 11.60) / 8.932);
    [
        (M, sigmoid(-(v + 39.57) / 9.871), tm),
        (Hf, h, thf),
        (Hs, h, ths),
        (J, h, tj),
        (Hsp, sigmoid((v + 89.1) / 6.086), 3.0 * ths),
        (Jp, h, 1.46 * tj),
        (Ml, sigmoid(-(v + 42.85) / 5.264), tm),
        (Hl, sigmoid((v + 87.61) / 7.488), 200.0),
        (Hlp, sigmoid((v + 93.81) / 7.488), 600.0),
        (A, sigmoid(-(v - 14.34) / 14.82), ta),
        (Ap, sigmoid(-(v - 24.34) / 14.82), ta),
        (If, i, tif),
        (Is, i, tis),
        (Ifp, i, slow * tif),
        (Isp, i, slow * tis),
        (D, sigmoid(-(v + 3.940) / 4.230), 0.6 + period(1.0, -0.05 * (v + 6.0), 1.0, 0.09 * (v + 14.0))),
        (Ff, f, tff),
        (Fs, f, tfs),
        (Fcaf, f, tfcaf),
        (Fcas, f, tfcas),
        (Jca, f, 75.0),
        (Ffp, f, 2.5 * tff),
        (Fcafp, f, 2.5 * tfcaf),
        (Xrf, xr, 12.98 + period(0.3652, (v - 31.66) / 3.869, 4.123e-5, -(v - 47.78) / 20.38)),
        (Xrs, xr, 1.865 + period(0.06629, (v - 34.70) / 7.355, 1.128e-5, -(v - 29.74) / 25.94)),
        (Xs1, xs, 817.3 + period(2.326e-4, (v + 48.28) / 17.80, 0.001292, -(v + 210.0) / 230.0)),
        (Xs2, xs, period(0.01, (v - 50.0) / 20.0, 0.0193, -(v + 66.54) / 31.0)),
        (Xk1, sigmoid(-(v + 2.5538 * KO + 144.59) / (1.5692 * KO + 3.8115)),
            122.2 * period(1.0, -(v + 127.2) / 20.36, 1.0, (v + 236.8) / 69.33)),
    ]
}

/// Stationary occupancies of a cycle of four states with rates `forward[i]` from i to i + 1 and
/// `backward[i]` from i + 1 to i: the null vector of the rate matrix, by elimination.
fn stationary(forward: [f64; 4], backward: [f64; 4]) -> [f64; 4] {
    let mut a = [[0.0; 5]; 4];
    for i in 0..4 {
        let j = (i + 1) % 4;
        a[i][i] -= forward[i];
        a[j][i] += forward[i];
        a[j][j] -= backward[i];
        a[i][j] += backward[i];
    }
    a[3] = [1.0; 5]; // the occupancies sum to one
    for column in 0..4 {
        let pivot = (column..4).max_by(|&p, &q| a[p][column].abs().total_cmp(&a[q][column].abs()));
        a.swap(column, pivot.unwrap_or(column));
        for row in 0..4 {
            if row != column {
                let factor = a[row][column] / a[column][column];
                let pivot = a[column];
                (0..5).for_each(|k| a[row][k] -= factor * pivot[k]);
            }
        }
    }
    std::array::from_fn(|i| a[i][4] / a[i][i])
}

/// Net flux of sodium and calcium through the exchanger, per exchanger.
fn exchanger(vfrt: f64, na: f64, ca: f64) -> (f64, f64) {
    let (hna, hca) = ((0.5224 * vfrt).exp(), (0.1670 * vfrt).exp());
    let h1 = 1.0 + na / 88.12 * (1.0 + hna);
    let (h2, h3) = (na * hna / (88.12 * h1), 1.0 / h1);
    let h4 = 1.0 + na / 15.0 * (1.0 + na / 5.0);
    let (h5, h6) = (na * na / (h4 * 75.0), 1.0 / h4);
    let h7 = 1.0 + NAO / 88.12 * (1.0 + 1.0 / hna);
    let (h8, h9) = (NAO / (88.12 * hna * h7), 1.0 / h7);
    let h10 = 12.5 + 1.0 + NAO / 15.0 * (1.0 + NAO / 5.0);
    let (h11, h12) = (NAO * NAO / (h10 * 75.0), 1.0 / h10);
    let (k1, k2, k5) = (h12 * CAO * 1.5e6, 5e3, 5e3);
    let (k3_ca, k3_na) = (h9 * 6e4, h8 * 5e3);
    let (k4_ca, k4_na) = (h3 * 6e4 / hca, h2 * 5e3);
    let (k6, k7, k8) = (h6 * ca * 1.5e6, h5 * h2 * 6e4, h8 * h11 * 6e4);
    // States 1 to 4; 1 <-> 2 and 3 <-> 4 bind calcium, 2 <-> 3 crosses, 4 <-> 1 carries sodium.
    let e = stationary([k1, k3_ca + k3_na, k5, k7], [k2, k4_ca + k4_na, k6, k8]);
    let sodium = 3.0 * (e[3] * k7 - e[0] * k8) + e[2] * k4_na - e[1] * k3_na;
    let calcium = e[1] * k2 - e[0] * k1;
    let allosteric = 1.0 / (1.0 + (150e-6 / ca).powi(2));
    (allosteric * sodium, allosteric * calcium)
}

/// Fluxes of sodium and potassium through the pump, per pump.
fn pump(vfrt: f64, nai: f64, ki: f64) -> (f64, f64) {
    let na_in = nai / (9.073 * (-0.155 * vfrt / 3.0).exp());
    let na_out = NAO / (27.78 * (1.155 * vfrt / 3.0).exp());
    let (k_in, k_out) = (ki / 0.5, KO / 0.3582);
    let (adp, atp, h) = (0.05, 9.8 / 1.698e-7, 1e-7);
    let phosphate = 4.2 / (1.0 + h / 1.698e-7 + nai / 224.0 + ki / 292.0);
    let inner = (1.0 + na_in).powi(3) + (1.0 + k_in).powi(2) - 1.0;
    let outer = (1.0 + na_out).powi(3) + (1.0 + k_out).powi(2) - 1.0;
    let a = [
        949.5 * na_in.powi(3) / inner,
        687.2,
        1899.0 * k_out.powi(2) / outer,
        639.0 * atp / (1.0 + atp),
    ];
    let b = [
        182.4 * adp,
        39.4 * na_out.powi(3) / outer,
        79300.0 * phosphate * h / (1.0 + atp),
        40.0 * k_in.powi(2) / inner,
    ];
    // Occupancies from the published diagram sums of the cycle 1 -> 2 -> 3 -> 4.
    let x = [
        a[3] * a[0] * a[1] + b[1] * b[3] * b[2] + a[1] * b[3] * b[2] + b[2] * a[0] * a[1],
        b[1] * b[0] * b[3] + a[0] * a[1] * a[2] + a[2] * b[0] * b[3] + a[1] * a[2] * b[3],
        a[1] * a[2] * a[3] + b[2] * b[1] * b[0] + b[1] * b[0] * a[3] + a[2] * a[3] * b[0],
        b[3] * b[2] * b[1] + a[2] * a[3] * a[0] + b[1] * a[3] * a[0] + b[2] * b[1] * a[0],
    ];
    let e = x.map(|x_i| x_i / x.iter().sum::<f64>());
    (
        3.0 * (e[0] * a[2] - e[1] * b[2]),
        2.0 * (e[3] * b[0] - e[2] * a[0]),
    )
}

/// Goldman-Hodgkin-Katz current density of an ion of valence `z`.
fn ghk(z: f64, vfrt: f64, inside: f64, outside: f64) -> f64 {
    z * z * vfrt * F * (inside * (z * vfrt).exp() - outside) / (z * vfrt).exp_m1()
}

/// One time step of one cell.
fn advance(s: &mut [f64; STATES], stimulus: f64, dt: f64) {
    let old = *s;
    let at = |k: S| old[k as usize];
    let (v, nai, nass, ki, kss) = (at(V), at(Nai), at(Nass), at(Ki), at(Kss));
    let (cai, cass, cansr, cajsr) = (at(Cai), at(Cass), at(Cansr), at(Cajsr));
    let vfrt = v * F / (R * T);
    let nernst = |outside: f64, inside: f64| R * T / F * (outside / inside).ln();
    let (ena, ek) = (nernst(NAO, nai), nernst(KO, ki));
    let eks = nernst(KO + 0.01833 * NAO, ki + 0.01833 * nai);

    let camk_bound = 0.05 * (1.0 - at(Camkt)) / (1.0 + 0.0015 / cass);
    let camk = camk_bound + at(Camkt);
    let p = 1.0 / (1.0 + 0.15 / camk);
    let mix = |plain: f64, phosphorylated: f64| (1.0 - p) * plain + p * phosphorylated;

    // Gates.
    for (gate, target, tau) in gates(v) {
        let k = gate as usize;
        s[k] = target + (old[k] - target) * (-dt / tau).exp();
    }
    let gates = *s;
    let g = |k: S| gates[k as usize];
    let km2n = g(Jca);
    let anca = 1.0 / (1000.0 / km2n + (1.0 + 0.002 / cass).powi(4));
    let nca = at(Nca) + dt * (anca * 1000.0 - at(Nca) * km2n);

    // Currents.
    let h = 0.99 * g(Hf) + 0.01 * g(Hs);
    let hp = 0.99 * g(Hf) + 0.01 * g(Hsp);
    let ina = 75.0 * (v - ena) * g(M).powi(3) * mix(h * g(J), hp * g(Jp));
    let inal = 0.0075 * (v - ena) * g(Ml) * mix(g(Hl), g(Hlp));
    let fast = sigmoid((v - 213.6) / 151.2);
    let blend = |share: f64, a: f64, b: f64| share * a + (1.0 - share) * b;
    let ito = 0.02
        * (v - ek)
        * mix(
            g(A) * blend(fast, g(If), g(Is)),
            g(Ap) * blend(fast, g(Ifp), g(Isp)),
        );
    let ca_fast = 0.3 + 0.6 * sigmoid((v - 10.0) / 10.0);
    let open = |f: f64, fca: f64| g(D) * (f * (1.0 - nca) + g(Jca) * fca * nca);
    let permeability = 1e-4
        * mix(
            open(blend(0.6, g(Ff), g(Fs)), blend(ca_fast, g(Fcaf), g(Fcas))),
            1.1 * open(blend(0.6, g(Ffp), g(Fs)), blend(ca_fast, g(Fcafp), g(Fcas))),
        );
    let ical = permeability * ghk(2.0, vfrt, cass, 0.341 * CAO);
    let icana = 0.00125 * permeability * ghk(1.0, vfrt, 0.75 * nass, 0.75 * NAO);
    let icak = 3.574e-4 * permeability * ghk(1.0, vfrt, 0.75 * kss, 0.75 * KO);
    let rkr = sigmoid((v + 55.0) / 75.0) * sigmoid((v - 10.0) / 30.0);
    let xr = blend(sigmoid((v + 54.81) / 38.21), g(Xrf), g(Xrs));
    let ikr = 0.046 * (KO / 5.4).sqrt() * xr * rkr * (v - ek);
    let iks = 0.0034 * (1.0 + 0.6 / (1.0 + (3.8e-5 / cai).powf(1.4))) * g(Xs1) * g(Xs2) * (v - eks);
    let rk1 = sigmoid((v + 105.8 - 2.6 * KO) / 9.493);
    let ik1 = 0.1908 * KO.sqrt() * rk1 * g(Xk1) * (v - ek);
    let (na_i, ca_i) = exchanger(vfrt, nai, cai);
    let (na_ss, ca_ss) = exchanger(vfrt, nass, cass);
    let inaca_i = 0.8 * 0.0008 * (na_i + 2.0 * ca_i);
    let inaca_ss = 0.2 * 0.0008 * (na_ss + 2.0 * ca_ss);
    let (pump_na, pump_k) = pump(vfrt, nai, ki);
    let inak = 30.0 * (pump_na + pump_k);
    let ikb = 0.003 * sigmoid(-(v - 14.48) / 18.34) * (v - ek);
    let inab = 3.75e-10 * ghk(1.0, vfrt, nai, NAO);
    let icab = 2.5e-8 * ghk(2.0, vfrt, cai, 0.341 * CAO);
    let ipca = 0.0005 * cai / (0.0005 + cai);

    // Sarcoplasmic reticulum.
    let release = |y: f64, bt: f64| {
        let target = 0.5 * bt * -ical / (1.0 + (1.5 / cajsr).powi(8));
        let tau = (bt / (1.0 + 0.0123 / cajsr)).max(0.001);
        target + (y - target) * (-dt / tau).exp()
    };
    let (jreln, jrelp) = (release(at(Jrel), 4.75), release(at(Jrelp), 1.25 * 4.75));
    let jrel = mix(jreln, jrelp);
    let uptake = |km: f64| 0.004375 * cai / (cai + km);
    let jup = mix(uptake(0.00092), 2.75 * uptake(0.00092 - 0.00017)) - 0.0039375 * cansr / 15.0;
    let jtr = (cansr - cajsr) / 100.0;
    let (diff_na, diff_k, diff_ca) = ((nass - nai) / 2.0, (kss - ki) / 2.0, (cass - cai) / 0.2);

    // Geometry: a cylinder of 100 by 11 micrometres, twice its surface as capacitive area.
    let (length, radius) = (0.01, 0.0011);
    let cell = 1000.0 * PI * radius * radius * length;
    let area = 2.0 * (2.0 * PI * radius * radius + 2.0 * PI * radius * length);
    let (myo, nsr, jsr, ss) = (0.68 * cell, 0.0552 * cell, 0.0048 * cell, 0.02 * cell);

    let buffer = |terms: &[(f64, f64)], ca: f64| {
        1.0 / (1.0
            + terms
                .iter()
                .map(|(most, km)| most * km / (km + ca).powi(2))
                .sum::<f64>())
    };
    let rates = [
        (
            V,
            -(ina
                + inal
                + ito
                + ical
                + icana
                + icak
                + ikr
                + iks
                + ik1
                + inaca_i
                + inaca_ss
                + inak
                + inab
                + ikb
                + ipca
                + icab
                + stimulus),
        ),
        (
            Nai,
            -(ina + inal + 3.0 * (inaca_i + inak) + inab) * area / (F * myo) + diff_na * ss / myo,
        ),
        (Nass, -(icana + 3.0 * inaca_ss) * area / (F * ss) - diff_na),
        (
            Ki,
            -(ito + ikr + iks + ik1 + ikb + stimulus - 2.0 * inak) * area / (F * myo)
                + diff_k * ss / myo,
        ),
        (Kss, -icak * area / (F * ss) - diff_k),
        (
            Cai,
            buffer(&[(0.05, 0.00238), (0.07, 0.0005)], cai)
                * (-(ipca + icab - 2.0 * inaca_i) * area / (2.0 * F * myo) - jup * nsr / myo
                    + diff_ca * ss / myo),
        ),
        (
            Cass,
            buffer(&[(0.047, 0.00087), (1.124, 0.0087)], cass)
                * (-(ical - 2.0 * inaca_ss) * area / (2.0 * F * ss) + jrel * jsr / ss - diff_ca),
        ),
        (Cansr, jup - jtr * jsr / nsr),
        (Cajsr, buffer(&[(10.0, 0.8)], cajsr) * (jtr - jrel)),
        (Camkt, 0.05 * camk_bound * camk - 0.00068 * at(Camkt)),
    ];
    s[Nca as usize] = nca;
    s[Jrel as usize] = jreln;
    s[Jrelp as usize] = jrelp;
    for (k, rate) in rates {
        s[k as usize] = at(k) + dt * rate;
    }
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let (n, steps) = (data.param("n")?, data.param("steps")?);
    let dt = data.scalar("dt")?;
    let (state, stimulus) = (data.floats("state")?, data.floats("stimulus")?);
    let cells: Vec<[f64; STATES]> = (0..n)
        .into_par_iter()
        .map(|cell| {
            let mut s = std::array::from_fn(|k| state[k * n + cell]);
            (0..steps).for_each(|_| advance(&mut s, stimulus[cell], dt));
            s
        })
        .collect();
    let after = (0..STATES)
        .flat_map(|k| cells.iter().map(move |s| s[k]))
        .collect();
    Some(vec![floats("state", after)])
}
