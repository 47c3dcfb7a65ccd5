// Texture and surface objects of every dimension.
// corpus: sample
#include <cuda_runtime.h>
template <typename T> __global__ void textures(T *o, cudaTextureObject_t t, float x, int i) {
  int k = 0;
  o[k++] = tex1Dfetch<T>(t, i); o[k++] = tex1D<T>(t, x); o[k++] = tex2D<T>(t, x, x); o[k++] = tex3D<T>(t, x, x, x);
  o[k++] = tex1DLayered<T>(t, x, i); o[k++] = tex2DLayered<T>(t, x, x, i); o[k++] = texCubemap<T>(t, x, x, x);
  o[k++] = texCubemapLayered<T>(t, x, x, x, i); o[k++] = tex1DLod<T>(t, x, x); o[k++] = tex2DLod<T>(t, x, x, x);
  o[k++] = tex3DLod<T>(t, x, x, x, x); o[k++] = tex2DLayeredLod<T>(t, x, x, i, x);
  o[k++] = tex1DGrad<T>(t, x, x, x); o[k++] = tex2DGrad<T>(t, x, x, make_float2(x, 0), make_float2(0, x));
  o[k++] = tex3DGrad<T>(t, x, x, x, make_float4(x, 0, 0, 0), make_float4(0, x, 0, 0));
  bool resident; o[k++] = tex2D<T>(t, x, x, &resident); if (!resident) o[k++] = tex2DLod<T>(t, x, x, x, &resident);
}
#define T(T) template __global__ void textures<T>(T *, cudaTextureObject_t, float, int);
T(float) T(int) T(unsigned char) T(short2) T(uint2) T(float4) T(uchar4)
extern "C" __global__ void gather(float4 *o, cudaTextureObject_t t, float x) {
  o[0] = tex2Dgather<float4>(t, x, x, 0); o[1] = tex2Dgather<float4>(t, x, x, 1); o[2] = tex2Dgather<float4>(t, x, x, 2); o[3] = tex2Dgather<float4>(t, x, x, 3);
}
template <typename T> __global__ void surfaces(T *o, cudaSurfaceObject_t s, int i) {
  int k = 0; T v;
  surf1Dread(&v, s, i); o[k++] = v; surf2Dread(&v, s, i, i, cudaBoundaryModeZero); o[k++] = v;
  surf3Dread(&v, s, i, i, i, cudaBoundaryModeClamp); o[k++] = v; surf1DLayeredread(&v, s, i, 1); o[k++] = v;
  surf2DLayeredread(&v, s, i, i, 1); o[k++] = v; surfCubemapread(&v, s, i, i, 1); o[k++] = v;
  surf1Dwrite(v, s, i); surf2Dwrite(v, s, i, i, cudaBoundaryModeZero); surf3Dwrite(v, s, i, i, i, cudaBoundaryModeClamp);
  surf1DLayeredwrite(v, s, i, 2); surf2DLayeredwrite(v, s, i, i, 2); surfCubemapLayeredwrite(v, s, i, i, 2);
}
#define S(T) template __global__ void surfaces<T>(T *, cudaSurfaceObject_t, int);
S(unsigned char) S(short) S(float) S(int2) S(float4) S(uchar4) S(longlong1)
extern "C" __global__ void ptx_textures(unsigned *o, unsigned long long t) {
  unsigned r, s, u, v;
  asm volatile("txq.width.b32 %0, [%1];" : "=r"(r) : "l"(t)); o[0] = r;
  asm volatile("txq.channel_order.b32 %0, [%1];" : "=r"(r) : "l"(t)); o[1] = r;
  asm volatile("suq.height.b32 %0, [%1];" : "=r"(r) : "l"(t)); o[2] = r;
  asm volatile("{ .reg .pred p; istypep.texref p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(r) : "l"(t)); o[3] = r;
  asm volatile("tex.2d.v4.u32.s32 {%0,%1,%2,%3}, [%4, {%5,%5}];" : "=r"(r), "=r"(s), "=r"(u), "=r"(v) : "l"(t), "r"(3)); o[4] = r + s + u + v;
  asm volatile("sured.b.2d.add.u32.clamp [%0, {%1,%1}], %2;" :: "l"(t), "r"(3), "r"(r));
  asm volatile("sust.p.2d.v4.b32.zero [%0, {%1,%1}], {%2,%3,%2,%3};" :: "l"(t), "r"(3), "r"(r), "r"(s));
}
