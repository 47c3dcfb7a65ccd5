// Fluxes of ideal magnetohydrodynamics through the x faces of a periodic grid: HLLD.
//
// One thread per face. The states on both sides are reconstructed with limited slopes (monotonized
// central), then the Riemann problem between them is solved approximately with five waves, that
// is four states between the fast waves: two fast, two Alfven waves and the contact (Miyoshi and
// Kusano, J. Comput. Phys. 208, 2005; equation numbers below are theirs). Most faces need only
// some of the states, so warps diverge.

namespace {

constexpr double GAMMA = 5.0 / 3.0;

enum Field { RHO, VX, VY, VZ, BY, BZ, P, FIELDS };

// Conserved densities and their fluxes: mass, momentum, energy, transverse field.
struct Conserved {
    double mass, mx, my, mz, energy, by, bz;
};

__device__ __forceinline__ Conserved operator+(Conserved a, Conserved b) {
    return {a.mass + b.mass, a.mx + b.mx,   a.my + b.my, a.mz + b.mz,
            a.energy + b.energy, a.by + b.by, a.bz + b.bz};
}

__device__ __forceinline__ Conserved operator-(Conserved a, Conserved b) {
    return {a.mass - b.mass, a.mx - b.mx,   a.my - b.my, a.mz - b.mz,
            a.energy - b.energy, a.by - b.by, a.bz - b.bz};
}

__device__ __forceinline__ Conserved operator*(double s, Conserved a) {
    return {s * a.mass, s * a.mx, s * a.my, s * a.mz, s * a.energy, s * a.by, s * a.bz};
}

// One side of the face.
struct Side {
    double rho, vx, vy, vz, by, bz, p;

    __device__ double total_pressure(double bx) const {
        return p + 0.5 * (bx * bx + by * by + bz * bz);
    }
    __device__ double field_along_flow(double bx) const { return vx * bx + vy * by + vz * bz; }

    __device__ Conserved conserved(double bx) const {
        double kinetic = 0.5 * rho * (vx * vx + vy * vy + vz * vz);
        double magnetic = 0.5 * (bx * bx + by * by + bz * bz);
        return {rho, rho * vx, rho * vy, rho * vz, p / (GAMMA - 1.0) + kinetic + magnetic, by, bz};
    }

    __device__ Conserved flux(double bx) const {
        double total = total_pressure(bx), energy = conserved(bx).energy;
        return {rho * vx,
                rho * vx * vx + total - bx * bx,
                rho * vy * vx - bx * by,
                rho * vz * vx - bx * bz,
                (energy + total) * vx - bx * field_along_flow(bx),
                by * vx - bx * vy,
                bz * vx - bx * vz};
    }

    // Fast magnetosonic speed, Eq. 3.
    __device__ double fast(double bx) const {
        double sound = GAMMA * p, sum = sound + bx * bx + by * by + bz * bz;
        return sqrt((sum + sqrt(fmax(sum * sum - 4.0 * sound * bx * bx, 0.0))) / (2.0 * rho));
    }

    // The state between the fast wave of speed s and the Alfven wave, Eqs. 43 to 48. The field
    // and the flow along the face stay as they are where their equations are singular.
    __device__ Conserved behind_fast(double bx, double s, double contact, double total) const {
        double across = rho * (s - vx), below = across * (s - contact) - bx * bx;
        bool singular = fabs(below) < 1e-8 * total;
        double inverse = singular ? 0.0 : 1.0 / below;
        double turn = bx * (contact - vx) * inverse;
        double grow = singular ? 1.0 : (across * (s - vx) - bx * bx) * inverse;
        double density = across / (s - contact);
        double vy1 = vy - by * turn, vz1 = vz - bz * turn, by1 = by * grow, bz1 = bz * grow;
        double along = contact * bx + vy1 * by1 + vz1 * bz1;
        double energy = ((s - vx) * conserved(bx).energy - total_pressure(bx) * vx + total * contact
                         + bx * (field_along_flow(bx) - along)) / (s - contact);
        return {density, density * contact, density * vy1, density * vz1, energy, by1, bz1};
    }
};

__device__ __forceinline__ double limited(double before, double here, double after) {
    double left = here - before, right = after - here;
    if (left * right <= 0.0) return 0.0;
    double steepest = fmin(2.0 * fmin(fabs(left), fabs(right)), 0.5 * fabs(left + right));
    return copysign(steepest, left);
}

__device__ Conserved solve(const Side& l, const Side& r, double bx) {
    double fast_l = l.fast(bx), fast_r = r.fast(bx), fast = fmax(fast_l, fast_r);
    double sl = fmin(l.vx, r.vx) - fast, sr = fmax(l.vx, r.vx) + fast;  // Eq. 67
    if (sl >= 0.0) return l.flux(bx);
    if (sr <= 0.0) return r.flux(bx);

    // Speed of the contact and the total pressure between the fast waves, Eqs. 38 and 41.
    double al = l.rho * (sl - l.vx), ar = r.rho * (sr - r.vx);
    double ptl = l.total_pressure(bx), ptr = r.total_pressure(bx);
    double sm = (ar * r.vx - al * l.vx - ptr + ptl) / (ar - al);
    double total = (ar * ptl - al * ptr + al * ar * (r.vx - l.vx)) / (ar - al);

    Conserved ul = l.behind_fast(bx, sl, sm, total), ur = r.behind_fast(bx, sr, sm, total);
    double root_l = sqrt(ul.mass), root_r = sqrt(ur.mass);
    double alfven_l = sm - fabs(bx) / root_l, alfven_r = sm + fabs(bx) / root_r;  // Eq. 51
    if (alfven_l >= 0.0) return l.flux(bx) + sl * (ul - l.conserved(bx));
    if (alfven_r <= 0.0) return r.flux(bx) + sr * (ur - r.conserved(bx));

    // Between the Alfven waves flow and field along the face are common, Eqs. 59 to 63.
    double sign = copysign(1.0, bx), scale = 1.0 / (root_l + root_r);
    double vyl = ul.my / ul.mass, vzl = ul.mz / ul.mass;
    double vyr = ur.my / ur.mass, vzr = ur.mz / ur.mass;
    double vy = (root_l * vyl + root_r * vyr + (ur.by - ul.by) * sign) * scale;
    double vz = (root_l * vzl + root_r * vzr + (ur.bz - ul.bz) * sign) * scale;
    double by = (root_l * ur.by + root_r * ul.by + root_l * root_r * (vyr - vyl) * sign) * scale;
    double bz = (root_l * ur.bz + root_r * ul.bz + root_l * root_r * (vzr - vzl) * sign) * scale;
    double along = vy * by + vz * bz;
    if (sm >= 0.0) {
        double energy = ul.energy - root_l * (vyl * ul.by + vzl * ul.bz - along) * sign;
        Conserved inner = {ul.mass, ul.mx, ul.mass * vy, ul.mass * vz, energy, by, bz};
        return l.flux(bx) + sl * (ul - l.conserved(bx)) + alfven_l * (inner - ul);
    }
    double energy = ur.energy + root_r * (vyr * ur.by + vzr * ur.bz - along) * sign;
    Conserved inner = {ur.mass, ur.mx, ur.mass * vy, ur.mass * vz, energy, by, bz};
    return r.flux(bx) + sr * (ur - r.conserved(bx)) + alfven_r * (inner - ur);
}

}  // namespace

// cell: [FIELDS][rows][nx], a row is periodic; bx: [rows][nx], on the face to the right of a cell
// flux: [7][rows][nx], likewise
extern "C" __global__ void hlld(int nx, int rows, const double* __restrict__ cell,
                                const double* __restrict__ bx, double* __restrict__ flux) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= nx) return;
    const long long row = (long long)blockIdx.y * nx, cells = (long long)rows * nx;
    const int before = x > 0 ? x - 1 : nx - 1, next = x + 1 < nx ? x + 1 : 0;
    const int after = next + 1 < nx ? next + 1 : 0;
    double left[FIELDS], right[FIELDS];
#pragma unroll
    for (int k = 0; k < FIELDS; ++k) {
        const double* q = cell + k * cells + row;
        double a = q[before], b = q[x], c = q[next], d = q[after];
        left[k] = b + 0.5 * limited(a, b, c);
        right[k] = c - 0.5 * limited(b, c, d);
    }
    const Side l = {left[RHO], left[VX], left[VY], left[VZ], left[BY], left[BZ], left[P]};
    const Side r = {right[RHO], right[VX], right[VY], right[VZ], right[BY], right[BZ], right[P]};
    const Conserved f = solve(l, r, bx[row + x]);
    const double out[7] = {f.mass, f.mx, f.my, f.mz, f.energy, f.by, f.bz};
#pragma unroll
    for (int k = 0; k < 7; ++k) flux[k * cells + row + x] = out[k];
}
