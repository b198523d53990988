/*
** Complex arithmetic on float2 and double2, for the elementwise operators.
*/
#ifndef MB_CUDA_COMPLEX_CUH
#define MB_CUDA_COMPLEX_CUH

#include <cuda_runtime.h>

template <class C>
__device__ static inline C mb_complex(decltype(C::x) re, decltype(C::x) im)
{
    C c;
    c.x = re;
    c.y = im;
    return c;
}

template <class C>
__device__ static inline C mb_complex_mul(C a, C b)
{
    return mb_complex<C>(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

/* Smith's method, which avoids intermediate overflow. */
template <class C>
__device__ static inline C mb_complex_div(C a, C b)
{
    if (fabs(b.x) >= fabs(b.y)) {
        auto ratio = b.y / b.x, bottom = b.x + b.y * ratio;
        return mb_complex<C>((a.x + a.y * ratio) / bottom, (a.y - a.x * ratio) / bottom);
    }
    auto ratio = b.x / b.y, bottom = b.x * ratio + b.y;
    return mb_complex<C>((a.x * ratio + a.y) / bottom, (a.y * ratio - a.x) / bottom);
}

#endif
