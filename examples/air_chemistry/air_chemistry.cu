// Gas-phase chemistry of polluted air: 20 species, 25 reactions, one grid cell per thread.
//
// The reactions are those of Verwer's air pollution problem (SIAM J. Sci. Comput. 15, 1994), a
// cut-down version of the EMEP model. Lifetimes span ten orders of magnitude, so the scheme is
// implicit: the two-step backward differentiation formula, solved by Gauss-Seidel sweeps over the
// species (TWOSTEP, ibid.). Every cell has its own rate coefficients, made beforehand from
// temperature and sunlight. Coefficients, the two last states and the new one: 85 doubles.

namespace {

constexpr int REACTIONS = 25;

enum Species {
    NO2, NO, O3P, O3, HO2, OH, HCHO, CO, ALD, MEO2,
    C2O3, CO2, PAN, CH3O, HNO3, O1D, SO2, SO4, NO3, N2O5,
    SPECIES
};

// What the implicit formula knows before a sweep: the weighted past and the scaled step.
struct Step {
    double past[SPECIES], scaled;

    // The new concentration of a species that is made at rate p and lost at rate l y.
    __device__ __forceinline__ double solve(int species, double p, double l) const {
        return (past[species] + scaled * p) / (1.0 + scaled * l);
    }
};

// k[0] is not used: reactions count from 1, as in the paper.
__device__ __forceinline__ void sweep(double (&y)[SPECIES], const double (&k)[REACTIONS + 1],
                                      const Step& s) {
    y[NO2] = s.solve(NO2,
                     (k[2] * y[O3] + k[3] * y[HO2] + k[9] * y[C2O3] + k[12] * y[MEO2]) * y[NO]
                         + k[11] * y[PAN] + k[22] * y[NO3] + k[25] * y[N2O5],
                     k[1] + k[10] * y[C2O3] + k[14] * y[OH] + k[23] * y[O3] + k[24] * y[NO3]);
    y[NO] = s.solve(NO, k[1] * y[NO2] + k[21] * y[NO3],
                    k[2] * y[O3] + k[3] * y[HO2] + k[9] * y[C2O3] + k[12] * y[MEO2]);
    y[O3P] = s.solve(O3P, k[1] * y[NO2] + k[17] * y[O3] + k[19] * y[O1D] + k[22] * y[NO3], k[15]);
    y[O3] = s.solve(O3, k[15] * y[O3P], k[2] * y[NO] + k[16] + k[17] + k[23] * y[NO2]);
    y[HO2] = s.solve(HO2,
                     2.0 * k[4] * y[HCHO] + k[6] * y[HCHO] * y[OH] + k[7] * y[ALD]
                         + k[13] * y[CH3O] + k[20] * y[SO2] * y[OH],
                     k[3] * y[NO]);
    y[OH] = s.solve(OH, k[3] * y[HO2] * y[NO] + 2.0 * k[18] * y[O1D],
                    k[6] * y[HCHO] + k[8] * y[ALD] + k[14] * y[NO2] + k[20] * y[SO2]);
    y[HCHO] = s.solve(HCHO, k[13] * y[CH3O], k[4] + k[5] + k[6] * y[OH]);
    y[CO] = s.solve(CO, (k[4] + k[5] + k[6] * y[OH]) * y[HCHO] + k[7] * y[ALD], 0.0);
    y[ALD] = s.solve(ALD, 0.0, k[7] + k[8] * y[OH]);
    y[MEO2] = s.solve(MEO2, k[7] * y[ALD] + k[9] * y[C2O3] * y[NO], k[12] * y[NO]);
    y[C2O3] = s.solve(C2O3, k[8] * y[ALD] * y[OH] + k[11] * y[PAN],
                      k[9] * y[NO] + k[10] * y[NO2]);
    y[CO2] = s.solve(CO2, k[9] * y[C2O3] * y[NO], 0.0);
    y[PAN] = s.solve(PAN, k[10] * y[C2O3] * y[NO2], k[11]);
    y[CH3O] = s.solve(CH3O, k[12] * y[MEO2] * y[NO], k[13]);
    y[HNO3] = s.solve(HNO3, k[14] * y[NO2] * y[OH], 0.0);
    y[O1D] = s.solve(O1D, k[16] * y[O3], k[18] + k[19]);
    y[SO2] = s.solve(SO2, 0.0, k[20] * y[OH]);
    y[SO4] = s.solve(SO4, k[20] * y[SO2] * y[OH], 0.0);
    y[NO3] = s.solve(NO3, k[23] * y[NO2] * y[O3] + k[25] * y[N2O5],
                     k[21] + k[22] + k[24] * y[NO2]);
    y[N2O5] = s.solve(N2O5, k[24] * y[NO3] * y[NO2], k[25]);
}

}  // namespace

// rate: [REACTIONS][n] in ppm and minutes; concentration: [SPECIES][n] in ppm, updated in place
// step: minutes; a launch makes `steps` steps, the first with the past equal to the present
extern "C" __global__ void air_chemistry(int n, int steps, int sweeps, double step,
                                         const double* __restrict__ rate,
                                         double* __restrict__ concentration) {
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= n) return;
    double k[REACTIONS + 1] = {}, y[SPECIES], before[SPECIES];
#pragma unroll
    for (int r = 1; r <= REACTIONS; ++r) k[r] = rate[(long long)(r - 1) * n + cell];
#pragma unroll
    for (int i = 0; i < SPECIES; ++i) before[i] = y[i] = concentration[(long long)i * n + cell];

    Step s;
    s.scaled = 2.0 / 3.0 * step;
    for (int i = 0; i < steps; ++i) {
#pragma unroll
        for (int j = 0; j < SPECIES; ++j) {
            s.past[j] = (4.0 * y[j] - before[j]) / 3.0;
            before[j] = y[j];
        }
        for (int j = 0; j < sweeps; ++j) sweep(y, k, s);
    }
#pragma unroll
    for (int i = 0; i < SPECIES; ++i) concentration[(long long)i * n + cell] = y[i];
}
