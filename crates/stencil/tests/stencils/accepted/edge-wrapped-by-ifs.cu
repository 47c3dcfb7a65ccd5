__global__ void lap3p(const double *f, double *g, int nx, int ny, int nz, double h)
{
    int x = blockIdx.x*blockDim.x + threadIdx.x;
    int y = blockIdx.y*blockDim.y + threadIdx.y;
    int z = blockIdx.z*blockDim.z + threadIdx.z;
    if (x >= nx || y >= ny || z >= nz) return;
    int xm = x - 1; if (xm < 0) xm += nx;
    int xp = x + 1; if (xp >= nx) xp -= nx;
    int ym = y - 1; if (ym < 0) ym += ny;
    int yp = y + 1; if (yp >= ny) yp -= ny;
    int zm = z - 1; if (zm < 0) zm += nz;
    int zp = z + 1; if (zp >= nz) zp -= nz;
    g[(z*ny + y)*nx + x] = (f[(z*ny + y)*nx + xm] + f[(z*ny + y)*nx + xp] + f[(z*ny + ym)*nx + x] + f[(z*ny + yp)*nx + x]
       + f[(zm*ny + y)*nx + x] + f[(zp*ny + y)*nx + x] - 6.0 * f[(z*ny + y)*nx + x]) * h;
}
// expect:
// z: 1 and 1 cells are not computed
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function lap3p (f, g, h) {
//   g[z][y][x] = (f[z][y][x-1] + f[z][y][x+1] + f[z][y-1][x] + f[z][y+1][x] + f[z-1][y][x] + f[z+1][y][x] - 6.0 * f[z][y][x]) * h;
// }
// // other points of z = 0 : nz, y = 0 : ny, x = 0 : nx, wrapped along z, wrapped along y, wrapped along x:
// //   g[z][y][x] = (f[z][y][x-1] + f[z][y][x+1] + f[z][y-1][x] + f[z][y+1][x] + f[z-1][y][x] + f[z+1][y][x] - 6.0 * f[z][y][x]) * h;
// parameter nx, ny, nz;
// iterator z, y, x;
// double f[nz][ny][nx], g[nz][ny][nx], h;
// lap3p (f, g, h);
// return g;
