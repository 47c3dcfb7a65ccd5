__global__ void blurKernel(unsigned char *in, unsigned char *out, int w, int h) {
  int Col = blockIdx.x * blockDim.x + threadIdx.x;
  int Row = blockIdx.y * blockDim.y + threadIdx.y;
  if (Col < w && Row < h) {
    int pixVal = 0;
    int pixels = 0;
    for (int blurRow = -1; blurRow < 2; ++blurRow) {
      for (int blurCol = -1; blurCol < 2; ++blurCol) {
        int curRow = Row + blurRow;
        int curCol = Col + blurCol;
        if (curRow > -1 && curRow < h && curCol > -1 && curCol < w) {
          pixVal += in[curRow * w + curCol];
          pixels++;
        }
      }
    }
    out[Row * w + Col] = (unsigned char)(pixVal / pixels);
  }
}
// expect:
// Row: 1 and 1 cells are not computed
// Col: 1 and 1 cells are not computed
// function blurKernel (in, out) {
//   int pixVal = 0 + to_int(in[Row-1][Col-1]);
//   pixVal += to_int(in[Row-1][Col]);
//   pixVal += to_int(in[Row-1][Col+1]);
//   pixVal += to_int(in[Row][Col-1]);
//   pixVal += to_int(in[Row][Col]);
//   pixVal += to_int(in[Row][Col+1]);
//   pixVal += to_int(in[Row+1][Col-1]);
//   pixVal += to_int(in[Row+1][Col]);
//   pixVal += to_int(in[Row+1][Col+1]);
//   out[Row][Col] = to_uchar(quotient(pixVal, 9));
// }
// // other points of Row = 0 : h, Col = 0 : w:
// //   int pixVal = (Row >= 1 && Row < h+1 && Col >= 1 && Col < w+1 ? 0 + to_int(in[Row-1][Col-1]) : 0);
// //   int pixels = (Row >= 1 && Row < h+1 && Col >= 1 && Col < w+1 ? 1 : 0);
// //   int pixVal_2 = (Row >= 1 && Row < h+1 && Col >= 0 && Col < w ? pixVal + to_int(in[Row-1][Col]) : pixVal);
// //   int pixels_2 = (Row >= 1 && Row < h+1 && Col >= 0 && Col < w ? pixels + 1 : pixels);
// //   int pixVal_3 = (Row >= 1 && Row < h+1 && Col >= -1 && Col < w-1 ? pixVal_2 + to_int(in[Row-1][Col+1]) : pixVal_2);
// //   int pixels_3 = (Row >= 1 && Row < h+1 && Col >= -1 && Col < w-1 ? pixels_2 + 1 : pixels_2);
// //   int pixVal_4 = (Row >= 0 && Row < h && Col >= 1 && Col < w+1 ? pixVal_3 + to_int(in[Row][Col-1]) : pixVal_3);
// //   int pixels_4 = (Row >= 0 && Row < h && Col >= 1 && Col < w+1 ? pixels_3 + 1 : pixels_3);
// //   int pixVal_5 = (Row >= 0 && Row < h && Col >= 0 && Col < w ? pixVal_4 + to_int(in[Row][Col]) : pixVal_4);
// //   int pixels_5 = (Row >= 0 && Row < h && Col >= 0 && Col < w ? pixels_4 + 1 : pixels_4);
// //   int pixVal_6 = (Row >= 0 && Row < h && Col >= -1 && Col < w-1 ? pixVal_5 + to_int(in[Row][Col+1]) : pixVal_5);
// //   int pixels_6 = (Row >= 0 && Row < h && Col >= -1 && Col < w-1 ? pixels_5 + 1 : pixels_5);
// //   int pixVal_7 = (Row >= -1 && Row < h-1 && Col >= 1 && Col < w+1 ? pixVal_6 + to_int(in[Row+1][Col-1]) : pixVal_6);
// //   int pixels_7 = (Row >= -1 && Row < h-1 && Col >= 1 && Col < w+1 ? pixels_6 + 1 : pixels_6);
// //   int pixVal_8 = (Row >= -1 && Row < h-1 && Col >= 0 && Col < w ? pixVal_7 + to_int(in[Row+1][Col]) : pixVal_7);
// //   int pixels_8 = (Row >= -1 && Row < h-1 && Col >= 0 && Col < w ? pixels_7 + 1 : pixels_7);
// //   int pixVal_9 = (Row >= -1 && Row < h-1 && Col >= -1 && Col < w-1 ? pixVal_8 + to_int(in[Row+1][Col+1]) : pixVal_8);
// //   int pixels_9 = (Row >= -1 && Row < h-1 && Col >= -1 && Col < w-1 ? pixels_8 + 1 : pixels_8);
// //   out[Row][Col] = to_uchar(quotient(pixVal_9, pixels_9));
// parameter w, h;
// iterator Row, Col;
// uchar in[h][w], out[h][w];
// blurKernel (in, out);
// return out;
