// Human ventricular action potential: one cell per thread, a few time steps per launch.
//
// The membrane model of O'Hara, Virag, Varro and Rudy (PLoS Comput. Biol. 7, 2011), endocardial
// cell: 41 state variables, 14 currents, four ion concentrations in up to four compartments.
// Gates advance by Rush and Larsen's exponential rule, everything else by forward Euler. The
// states of all cells lie variable by variable, so that a warp's accesses coalesce; between the
// load at the start and the store at the end all of them live in registers.

namespace {

// Physical constants and extracellular concentrations (mmol/l).
constexpr double R = 8314.0, T = 310.0, F = 96485.0;
constexpr double NAO = 140.0, CAO = 1.8, KO = 5.4;

// Cell geometry: a cylinder; areas in cm^2, volumes in microlitres.
constexpr double LENGTH = 0.01, RADIUS = 0.0011, PI = 3.14;
constexpr double V_CELL = 1000.0 * PI * RADIUS * RADIUS * LENGTH;
constexpr double A_CAP = 2.0 * (2.0 * PI * RADIUS * RADIUS + 2.0 * PI * RADIUS * LENGTH);
constexpr double V_MYO = 0.68 * V_CELL, V_NSR = 0.0552 * V_CELL;
constexpr double V_JSR = 0.0048 * V_CELL, V_SS = 0.02 * V_CELL;

// Half-saturation of CaMKII activation.
constexpr double KM_CAMK = 0.15;

enum State {
    V, NAI, NASS, KI, KSS, CAI, CASS, CANSR, CAJSR,
    M, HF, HS, J, HSP, JP, ML, HL, HLP,
    A, IF_, IS, AP, IFP, ISP,
    D, FF, FS, FCAF, FCAS, JCA, NCA, FFP, FCAFP,
    XRF, XRS, XS1, XS2, XK1,
    JREL, JRELP, CAMKT,
    STATES
};

__device__ __forceinline__ double square(double x) { return x * x; }

// A Boltzmann curve: 1 / (1 + exp((v + shift) / slope)).
__device__ __forceinline__ double boltzmann(double v, double shift, double slope) {
    return 1.0 / (1.0 + exp((v + shift) / slope));
}

// Rush and Larsen: the gate's equation is linear while v stands still.
__device__ __forceinline__ double relax(double y, double target, double tau, double dt) {
    return target - (target - y) * exp(-dt / tau);
}

// Goldman-Hodgkin-Katz flux of an ion of valence z; vfrt = v F / (R T).
__device__ __forceinline__ double ghk(double z, double vfrt, double inside, double outside) {
    double e = exp(z * vfrt);
    return z * z * vfrt * F * (inside * e - outside) / (e - 1.0);
}

struct Exchange {
    double na, ca;
};

// Na+/Ca2+ exchanger facing one compartment: steady state of its six-state cycle.
__device__ __forceinline__ Exchange exchanger(double vfrt, double na, double ca) {
    const double kna1 = 15.0, kna2 = 5.0, kna3 = 88.12, kasymm = 12.5;
    const double wna = 6.0e4, wca = 6.0e4, wnaca = 5.0e3, kcaon = 1.5e6, kcaoff = 5.0e3;
    double hca = exp(0.1670 * vfrt), hna = exp(0.5224 * vfrt);

    double h1 = 1.0 + na / kna3 * (1.0 + hna);
    double h2 = na * hna / (kna3 * h1);
    double h3 = 1.0 / h1;
    double h4 = 1.0 + na / kna1 * (1.0 + na / kna2);
    double h5 = na * na / (h4 * kna1 * kna2);
    double h6 = 1.0 / h4;
    double h7 = 1.0 + NAO / kna3 * (1.0 + 1.0 / hna);
    double h8 = NAO / (kna3 * hna * h7);
    double h9 = 1.0 / h7;
    const double h10 = kasymm + 1.0 + NAO / kna1 * (1.0 + NAO / kna2);
    const double h11 = NAO * NAO / (h10 * kna1 * kna2), h12 = 1.0 / h10;

    const double k1 = h12 * CAO * kcaon, k2 = kcaoff, k5 = kcaoff;
    double k3p = h9 * wca, k3pp = h8 * wnaca, k3 = k3p + k3pp;
    double k4p = h3 * wca / hca, k4pp = h2 * wnaca, k4 = k4p + k4pp;
    double k6 = h6 * ca * kcaon, k7 = h5 * h2 * wna, k8 = h8 * h11 * wna;

    double x1 = k2 * k4 * (k7 + k6) + k5 * k7 * (k2 + k3);
    double x2 = k1 * k7 * (k4 + k5) + k4 * k6 * (k1 + k8);
    double x3 = k1 * k3 * (k7 + k6) + k8 * k6 * (k2 + k3);
    double x4 = k2 * k8 * (k4 + k5) + k3 * k5 * (k1 + k8);
    double scale = 1.0 / (x1 + x2 + x3 + x4);
    double e1 = x1 * scale, e2 = x2 * scale, e3 = x3 * scale, e4 = x4 * scale;

    double allosteric = 1.0 / (1.0 + square(150.0e-6 / ca));
    return {allosteric * (3.0 * (e4 * k7 - e1 * k8) + e3 * k4pp - e2 * k3pp),
            allosteric * (e2 * k2 - e1 * k1)};
}

// Na+/K+ pump: steady state of its four-state cycle, in ions of Na+ per unit time (K+ is 2/3).
__device__ __forceinline__ Exchange pump(double vfrt, double nai, double ki) {
    const double k1p = 949.5, k1m = 182.4, k2p = 687.2, k2m = 39.4;
    const double k3p = 1899.0, k3m = 79300.0, k4p = 639.0, k4m = 40.0, delta = -0.1550;
    const double kki = 0.5, kko = 0.3582, adp = 0.05, atp = 9.8 / 1.698e-7, h = 1.0e-7;
    double knai = 9.073 * exp(delta * vfrt / 3.0);
    double knao = 27.78 * exp((1.0 - delta) * vfrt / 3.0);
    double phosphate = 4.2 / (1.0 + h / 1.698e-7 + nai / 224.0 + ki / 292.0);

    double ni = nai / knai, no = NAO / knao, kr = ki / kki;
    const double ko = KO / kko;
    double inner = (1.0 + ni) * square(1.0 + ni) + square(1.0 + kr) - 1.0;
    double outer = (1.0 + no) * square(1.0 + no) + square(1.0 + ko) - 1.0;
    double a1 = k1p * ni * square(ni) / inner, a2 = k2p;
    double a3 = k3p * square(ko) / outer, a4 = k4p * atp / (1.0 + atp);
    double b1 = k1m * adp, b2 = k2m * no * square(no) / outer;
    double b3 = k3m * phosphate * h / (1.0 + atp), b4 = k4m * square(kr) / inner;

    double x1 = a4 * a1 * a2 + b2 * b4 * b3 + a2 * b4 * b3 + b3 * a1 * a2;
    double x2 = b2 * b1 * b4 + a1 * a2 * a3 + a3 * b1 * b4 + a2 * a3 * b4;
    double x3 = a2 * a3 * a4 + b3 * b2 * b1 + b2 * b1 * a4 + a3 * a4 * b1;
    double x4 = b4 * b3 * b2 + a3 * a4 * a1 + b2 * a4 * a1 + b3 * b2 * a1;
    double scale = 1.0 / (x1 + x2 + x3 + x4);
    return {3.0 * (x1 * a3 - x2 * b3) * scale, 2.0 * (x4 * b1 - x3 * a1) * scale};
}

__device__ void step(double (&s)[STATES], double stimulus, double dt) {
    const double v = s[V], nai = s[NAI], ki = s[KI], cai = s[CAI], cass = s[CASS];
    const double vfrt = v * F / (R * T);
    const double ek = R * T / F * log(KO / ki);
    const double ena = R * T / F * log(NAO / nai);
    const double eks = R * T / F * log((KO + 0.01833 * NAO) / (ki + 0.01833 * nai));

    // CaMKII: the share of channels that it has phosphorylated.
    const double bound = 0.05 * (1.0 - s[CAMKT]) / (1.0 + 0.0015 / cass);
    const double active = bound + s[CAMKT];
    const double phos = 1.0 / (1.0 + KM_CAMK / active);
    s[CAMKT] += dt * (0.05 * bound * active - 0.00068 * s[CAMKT]);

    // Fast and late sodium current.
    double tm = 1.0 / (6.765 * exp((v + 11.64) / 34.77) + 8.552 * exp(-(v + 77.42) / 5.955));
    double hss = boltzmann(v, 82.90, 6.086);
    double thf = 1.0 / (1.432e-5 * exp(-(v + 1.196) / 6.285) + 6.149 * exp((v + 0.5096) / 20.27));
    double ths = 1.0 / (0.009794 * exp(-(v + 17.95) / 28.05) + 0.3343 * exp((v + 5.730) / 56.66));
    double tj = 2.038 + 1.0 / (0.02136 * exp(-(v + 100.6) / 8.281) + 0.3052 * exp((v + 0.9941) / 38.45));
    s[M] = relax(s[M], boltzmann(v, 39.57, -9.871), tm, dt);
    s[HF] = relax(s[HF], hss, thf, dt);
    s[HS] = relax(s[HS], hss, ths, dt);
    s[J] = relax(s[J], hss, tj, dt);
    s[HSP] = relax(s[HSP], boltzmann(v, 89.1, 6.086), 3.0 * ths, dt);
    s[JP] = relax(s[JP], hss, 1.46 * tj, dt);
    double h = 0.99 * s[HF] + 0.01 * s[HS], hp = 0.99 * s[HF] + 0.01 * s[HSP];
    double ina = 75.0 * (v - ena) * s[M] * square(s[M]) * ((1.0 - phos) * h * s[J] + phos * hp * s[JP]);
    s[ML] = relax(s[ML], boltzmann(v, 42.85, -5.264), tm, dt);
    s[HL] = relax(s[HL], boltzmann(v, 87.61, 7.488), 200.0, dt);
    s[HLP] = relax(s[HLP], boltzmann(v, 93.81, 7.488), 600.0, dt);
    double inal = 0.0075 * (v - ena) * s[ML] * ((1.0 - phos) * s[HL] + phos * s[HLP]);

    // Transient outward potassium current.
    double ta = 1.0515 / (1.0 / (1.2089 * (1.0 + exp(-(v - 18.4099) / 29.3814)))
                          + 3.5 / (1.0 + exp((v + 100.0) / 29.3814)));
    double iss = boltzmann(v, 43.94, 5.711);
    double tif = 4.562 + 1.0 / (0.3933 * exp(-(v + 100.0) / 100.0) + 0.08004 * exp((v + 50.0) / 16.59));
    double tis = 23.62 + 1.0 / (0.001416 * exp(-(v + 96.52) / 59.05) + 1.780e-8 * exp((v + 114.1) / 8.079));
    double develop = 1.354 + 1.0e-4 / (exp((v - 167.4) / 15.89) + exp(-(v - 12.23) / 0.2154));
    double recover = 1.0 - 0.5 * boltzmann(v, 70.0, 20.0);
    s[A] = relax(s[A], boltzmann(v, -14.34, -14.82), ta, dt);
    s[AP] = relax(s[AP], boltzmann(v, -24.34, -14.82), ta, dt);
    s[IF_] = relax(s[IF_], iss, tif, dt);
    s[IS] = relax(s[IS], iss, tis, dt);
    s[IFP] = relax(s[IFP], iss, develop * recover * tif, dt);
    s[ISP] = relax(s[ISP], iss, develop * recover * tis, dt);
    double aif = boltzmann(v, -213.6, 151.2);
    double inact = aif * s[IF_] + (1.0 - aif) * s[IS], inactp = aif * s[IFP] + (1.0 - aif) * s[ISP];
    double ito = 0.02 * (v - ek) * ((1.0 - phos) * s[A] * inact + phos * s[AP] * inactp);

    // L-type calcium channel, which also passes sodium and potassium.
    double td = 0.6 + 1.0 / (exp(-0.05 * (v + 6.0)) + exp(0.09 * (v + 14.0)));
    double fss = boltzmann(v, 19.58, 3.696);
    double tff = 7.0 + 1.0 / (0.0045 * exp(-(v + 20.0) / 10.0) + 0.0045 * exp((v + 20.0) / 10.0));
    double tfs = 1000.0 + 1.0 / (0.000035 * exp(-(v + 5.0) / 4.0) + 0.000035 * exp((v + 5.0) / 6.0));
    double tfcaf = 7.0 + 1.0 / (0.04 * exp(-(v - 4.0) / 7.0) + 0.04 * exp((v - 4.0) / 7.0));
    double tfcas = 100.0 + 1.0 / (0.00012 * exp(-v / 3.0) + 0.00012 * exp(v / 7.0));
    s[D] = relax(s[D], boltzmann(v, 3.940, -4.230), td, dt);
    s[FF] = relax(s[FF], fss, tff, dt);
    s[FS] = relax(s[FS], fss, tfs, dt);
    s[FCAF] = relax(s[FCAF], fss, tfcaf, dt);
    s[FCAS] = relax(s[FCAS], fss, tfcas, dt);
    s[JCA] = relax(s[JCA], fss, 75.0, dt);
    s[FFP] = relax(s[FFP], fss, 2.5 * tff, dt);
    s[FCAFP] = relax(s[FCAFP], fss, 2.5 * tfcaf, dt);
    double afcaf = 0.3 + 0.6 * boltzmann(v, -10.0, 10.0);
    double f = 0.6 * s[FF] + 0.4 * s[FS], fp = 0.6 * s[FFP] + 0.4 * s[FS];
    double fca = afcaf * s[FCAF] + (1.0 - afcaf) * s[FCAS];
    double fcap = afcaf * s[FCAFP] + (1.0 - afcaf) * s[FCAS];
    double km2n = s[JCA];
    double anca = 1.0 / (1000.0 / km2n + square(square(1.0 + 0.002 / cass)));
    s[NCA] += dt * (anca * 1000.0 - s[NCA] * km2n);
    double open = s[D] * (f * (1.0 - s[NCA]) + s[JCA] * fca * s[NCA]);
    double openp = s[D] * (fp * (1.0 - s[NCA]) + s[JCA] * fcap * s[NCA]);
    double permeability = 1.0e-4 * ((1.0 - phos) * open + 1.1 * phos * openp);
    double ical = permeability * ghk(2.0, vfrt, cass, 0.341 * CAO);
    double icana = 0.00125 * permeability * ghk(1.0, vfrt, 0.75 * s[NASS], 0.75 * NAO);
    double icak = 3.574e-4 * permeability * ghk(1.0, vfrt, 0.75 * s[KSS], 0.75 * KO);

    // Delayed and inward rectifier potassium currents.
    double xrss = boltzmann(v, 8.337, -6.789);
    double txrf = 12.98 + 1.0 / (0.3652 * exp((v - 31.66) / 3.869) + 4.123e-5 * exp(-(v - 47.78) / 20.38));
    double txrs = 1.865 + 1.0 / (0.06629 * exp((v - 34.70) / 7.355) + 1.128e-5 * exp(-(v - 29.74) / 25.94));
    s[XRF] = relax(s[XRF], xrss, txrf, dt);
    s[XRS] = relax(s[XRS], xrss, txrs, dt);
    double axrf = boltzmann(v, 54.81, 38.21);
    double rkr = boltzmann(v, 55.0, 75.0) * boltzmann(v, -10.0, 30.0);
    double ikr = 0.046 * (axrf * s[XRF] + (1.0 - axrf) * s[XRS]) * rkr * (v - ek);  // sqrt(KO / 5.4) is 1
    double xsss = boltzmann(v, 11.60, -8.932);
    double txs1 = 817.3 + 1.0 / (2.326e-4 * exp((v + 48.28) / 17.80) + 0.001292 * exp(-(v + 210.0) / 230.0));
    double txs2 = 1.0 / (0.01 * exp((v - 50.0) / 20.0) + 0.0193 * exp(-(v + 66.54) / 31.0));
    s[XS1] = relax(s[XS1], xsss, txs1, dt);
    s[XS2] = relax(s[XS2], xsss, txs2, dt);
    double ksca = 1.0 + 0.6 / (1.0 + exp(1.4 * log(3.8e-5 / cai)));
    double iks = 0.0034 * ksca * s[XS1] * s[XS2] * (v - eks);
    double txk1 = 122.2 / (exp(-(v + 127.2) / 20.36) + exp((v + 236.8) / 69.33));
    s[XK1] = relax(s[XK1], boltzmann(v, 2.5538 * KO + 144.59, -(1.5692 * KO + 3.8115)), txk1, dt);
    double ik1 = 0.1908 * sqrt(KO) * boltzmann(v, 105.8 - 2.6 * KO, 9.493) * s[XK1] * (v - ek);

    // Exchanger, pump and background currents.
    Exchange myo = exchanger(vfrt, nai, cai), ss = exchanger(vfrt, s[NASS], cass);
    double inaca_i = 0.0008 * 0.8 * (myo.na + 2.0 * myo.ca);
    double inaca_ss = 0.0008 * 0.2 * (ss.na + 2.0 * ss.ca);
    Exchange nak = pump(vfrt, nai, ki);
    double inak = 30.0 * (nak.na + nak.ca);
    double ikb = 0.003 * boltzmann(v, -14.48, -18.34) * (v - ek);
    double inab = 3.75e-10 * ghk(1.0, vfrt, nai, NAO);
    double icab = 2.5e-8 * ghk(2.0, vfrt, cai, 0.341 * CAO);
    double ipca = 0.0005 * cai / (0.0005 + cai);

    // Calcium release from and uptake into the sarcoplasmic reticulum, and diffusion.
    double gate = 1.0 / (1.0 + square(square(square(1.5 / s[CAJSR]))));
    double trel = fmax(4.75 / (1.0 + 0.0123 / s[CAJSR]), 0.001);
    double trelp = fmax(1.25 * 4.75 / (1.0 + 0.0123 / s[CAJSR]), 0.001);
    s[JREL] = relax(s[JREL], 0.5 * 4.75 * -ical * gate, trel, dt);
    s[JRELP] = relax(s[JRELP], 0.5 * 1.25 * 4.75 * -ical * gate, trelp, dt);
    double jrel = (1.0 - phos) * s[JREL] + phos * s[JRELP];
    double jup = (1.0 - phos) * 0.004375 * cai / (cai + 0.00092)
               + phos * 2.75 * 0.004375 * cai / (cai + 0.00092 - 0.00017)
               - 0.0039375 * s[CANSR] / 15.0;
    double jtr = (s[CANSR] - s[CAJSR]) / 100.0;
    double jdiff_na = (s[NASS] - nai) / 2.0, jdiff_k = (s[KSS] - ki) / 2.0, jdiff = (cass - cai) / 0.2;

    // Concentrations and voltage.
    const double per_myo = A_CAP / (F * V_MYO), per_ss = A_CAP / (F * V_SS);
    s[NAI] += dt * (-(ina + inal + 3.0 * inaca_i + 3.0 * inak + inab) * per_myo + jdiff_na * V_SS / V_MYO);
    s[NASS] += dt * (-(icana + 3.0 * inaca_ss) * per_ss - jdiff_na);
    s[KI] += dt * (-(ito + ikr + iks + ik1 + ikb + stimulus - 2.0 * inak) * per_myo + jdiff_k * V_SS / V_MYO);
    s[KSS] += dt * (-icak * per_ss - jdiff_k);
    double bcai = 1.0 / (1.0 + 0.05 * 0.00238 / square(0.00238 + cai) + 0.07 * 0.0005 / square(0.0005 + cai));
    s[CAI] += dt * bcai * (-(ipca + icab - 2.0 * inaca_i) * 0.5 * per_myo - jup * V_NSR / V_MYO + jdiff * V_SS / V_MYO);
    double bcass = 1.0 / (1.0 + 0.047 * 0.00087 / square(0.00087 + cass) + 1.124 * 0.0087 / square(0.0087 + cass));
    s[CASS] += dt * bcass * (-(ical - 2.0 * inaca_ss) * 0.5 * per_ss + jrel * V_JSR / V_SS - jdiff);
    s[CANSR] += dt * (jup - jtr * V_JSR / V_NSR);
    double bcajsr = 1.0 / (1.0 + 10.0 * 0.8 / square(0.8 + s[CAJSR]));
    s[CAJSR] += dt * bcajsr * (jtr - jrel);
    s[V] -= dt * (ina + inal + ito + ical + icana + icak + ikr + iks + ik1 + inaca_i + inaca_ss + inak
                  + inab + ikb + ipca + icab + stimulus);
}

}  // namespace

// state: [STATES][n]; stimulus: [n] in microampere per microfarad; dt in ms.
extern "C" __global__ void ionic_step(int n, int steps, double dt, double* __restrict__ state,
                                      const double* __restrict__ stimulus) {
    int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= n) return;
    double s[STATES];
#pragma unroll
    for (int k = 0; k < STATES; ++k) s[k] = state[k * n + cell];
    double current = stimulus[cell];
    for (int i = 0; i < steps; ++i) step(s, current, dt);
#pragma unroll
    for (int k = 0; k < STATES; ++k) state[k * n + cell] = s[k];
}
