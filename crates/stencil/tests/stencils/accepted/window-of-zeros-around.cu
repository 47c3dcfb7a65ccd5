#define MASK_WIDTH 5
#define TILE 12
__constant__ double M[MASK_WIDTH][MASK_WIDTH];
__global__ void conv_tiled(double *P, const double *N, int height, int width) {
    __shared__ double Ns[TILE + MASK_WIDTH - 1][TILE + MASK_WIDTH - 1];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row_o = blockIdx.y * TILE + ty;
    int col_o = blockIdx.x * TILE + tx;
    int row_i = row_o - MASK_WIDTH / 2;
    int col_i = col_o - MASK_WIDTH / 2;
    if (row_i >= 0 && row_i < height && col_i >= 0 && col_i < width)
        Ns[ty][tx] = N[row_i * width + col_i];
    else
        Ns[ty][tx] = 0.0;
    __syncthreads();
    double out = 0.0;
    if (ty < TILE && tx < TILE) {
        for (int i = 0; i < MASK_WIDTH; i++)
            for (int j = 0; j < MASK_WIDTH; j++)
                out += M[i][j] * Ns[i + ty][j + tx];
        if (row_o < height && col_o < width)
            P[row_o * width + col_o] = out;
    }
}
// expect:
// row_o: 2 and 2 cells are not computed
// col_o: 2 and 2 cells are not computed
// function conv_tiled (P, N, M_of_file) {
//   double out = 0.0;
//   out += M_of_file[0][0] * N[row_o-2][col_o-2];
//   out += M_of_file[0][1] * N[row_o-2][col_o-1];
//   out += M_of_file[0][2] * N[row_o-2][col_o];
//   out += M_of_file[0][3] * N[row_o-2][col_o+1];
//   out += M_of_file[0][4] * N[row_o-2][col_o+2];
//   out += M_of_file[1][0] * N[row_o-1][col_o-2];
//   out += M_of_file[1][1] * N[row_o-1][col_o-1];
//   out += M_of_file[1][2] * N[row_o-1][col_o];
//   out += M_of_file[1][3] * N[row_o-1][col_o+1];
//   out += M_of_file[1][4] * N[row_o-1][col_o+2];
//   out += M_of_file[2][0] * N[row_o][col_o-2];
//   out += M_of_file[2][1] * N[row_o][col_o-1];
//   out += M_of_file[2][2] * N[row_o][col_o];
//   out += M_of_file[2][3] * N[row_o][col_o+1];
//   out += M_of_file[2][4] * N[row_o][col_o+2];
//   out += M_of_file[3][0] * N[row_o+1][col_o-2];
//   out += M_of_file[3][1] * N[row_o+1][col_o-1];
//   out += M_of_file[3][2] * N[row_o+1][col_o];
//   out += M_of_file[3][3] * N[row_o+1][col_o+1];
//   out += M_of_file[3][4] * N[row_o+1][col_o+2];
//   out += M_of_file[4][0] * N[row_o+2][col_o-2];
//   out += M_of_file[4][1] * N[row_o+2][col_o-1];
//   out += M_of_file[4][2] * N[row_o+2][col_o];
//   out += M_of_file[4][3] * N[row_o+2][col_o+1];
//   out += M_of_file[4][4] * N[row_o+2][col_o+2];
//   P[row_o][col_o] = out;
// }
// // `M_of_file` is `M` of the file
// // other points of row_o = 0 : height, col_o = 0 : width:
// //   double out = 0.0;
// //   out += M_of_file[0][0] * (row_o >= 2 && row_o < height+2 && col_o >= 2 && col_o < width+2 ? N[row_o-2][col_o-2] : 0.0);
// //   out += M_of_file[0][1] * (row_o >= 2 && row_o < height+2 && col_o >= 1 && col_o < width+1 ? N[row_o-2][col_o-1] : 0.0);
// //   out += M_of_file[0][2] * (row_o >= 2 && row_o < height+2 && col_o >= 0 && col_o < width ? N[row_o-2][col_o] : 0.0);
// //   out += M_of_file[0][3] * (row_o >= 2 && row_o < height+2 && col_o >= -1 && col_o < width-1 ? N[row_o-2][col_o+1] : 0.0);
// //   out += M_of_file[0][4] * (row_o >= 2 && row_o < height+2 && col_o >= -2 && col_o < width-2 ? N[row_o-2][col_o+2] : 0.0);
// //   out += M_of_file[1][0] * (row_o >= 1 && row_o < height+1 && col_o >= 2 && col_o < width+2 ? N[row_o-1][col_o-2] : 0.0);
// //   out += M_of_file[1][1] * (row_o >= 1 && row_o < height+1 && col_o >= 1 && col_o < width+1 ? N[row_o-1][col_o-1] : 0.0);
// //   out += M_of_file[1][2] * (row_o >= 1 && row_o < height+1 && col_o >= 0 && col_o < width ? N[row_o-1][col_o] : 0.0);
// //   out += M_of_file[1][3] * (row_o >= 1 && row_o < height+1 && col_o >= -1 && col_o < width-1 ? N[row_o-1][col_o+1] : 0.0);
// //   out += M_of_file[1][4] * (row_o >= 1 && row_o < height+1 && col_o >= -2 && col_o < width-2 ? N[row_o-1][col_o+2] : 0.0);
// //   out += M_of_file[2][0] * (row_o >= 0 && row_o < height && col_o >= 2 && col_o < width+2 ? N[row_o][col_o-2] : 0.0);
// //   out += M_of_file[2][1] * (row_o >= 0 && row_o < height && col_o >= 1 && col_o < width+1 ? N[row_o][col_o-1] : 0.0);
// //   out += M_of_file[2][2] * (row_o >= 0 && row_o < height && col_o >= 0 && col_o < width ? N[row_o][col_o] : 0.0);
// //   out += M_of_file[2][3] * (row_o >= 0 && row_o < height && col_o >= -1 && col_o < width-1 ? N[row_o][col_o+1] : 0.0);
// //   out += M_of_file[2][4] * (row_o >= 0 && row_o < height && col_o >= -2 && col_o < width-2 ? N[row_o][col_o+2] : 0.0);
// //   out += M_of_file[3][0] * (row_o >= -1 && row_o < height-1 && col_o >= 2 && col_o < width+2 ? N[row_o+1][col_o-2] : 0.0);
// //   out += M_of_file[3][1] * (row_o >= -1 && row_o < height-1 && col_o >= 1 && col_o < width+1 ? N[row_o+1][col_o-1] : 0.0);
// //   out += M_of_file[3][2] * (row_o >= -1 && row_o < height-1 && col_o >= 0 && col_o < width ? N[row_o+1][col_o] : 0.0);
// //   out += M_of_file[3][3] * (row_o >= -1 && row_o < height-1 && col_o >= -1 && col_o < width-1 ? N[row_o+1][col_o+1] : 0.0);
// //   out += M_of_file[3][4] * (row_o >= -1 && row_o < height-1 && col_o >= -2 && col_o < width-2 ? N[row_o+1][col_o+2] : 0.0);
// //   out += M_of_file[4][0] * (row_o >= -2 && row_o < height-2 && col_o >= 2 && col_o < width+2 ? N[row_o+2][col_o-2] : 0.0);
// //   out += M_of_file[4][1] * (row_o >= -2 && row_o < height-2 && col_o >= 1 && col_o < width+1 ? N[row_o+2][col_o-1] : 0.0);
// //   out += M_of_file[4][2] * (row_o >= -2 && row_o < height-2 && col_o >= 0 && col_o < width ? N[row_o+2][col_o] : 0.0);
// //   out += M_of_file[4][3] * (row_o >= -2 && row_o < height-2 && col_o >= -1 && col_o < width-1 ? N[row_o+2][col_o+1] : 0.0);
// //   out += M_of_file[4][4] * (row_o >= -2 && row_o < height-2 && col_o >= -2 && col_o < width-2 ? N[row_o+2][col_o+2] : 0.0);
// //   P[row_o][col_o] = out;
// parameter height, width;
// iterator row_o, col_o;
// double P[height][width], N[height][width], M_of_file[5][5];
// conv_tiled (P, N, M_of_file);
// return P;
