/*
** Back-projection through shared memory by ordinary arithmetic: a thread owns one pixel and S slices in registers, reads two
** neighbouring packets per group and interpolates them. Floats give the exact mode of few slices, halves the fast one; whole
** blocks of slices go to the tensor cores (backproject_mma.cuh), which need at least 16 slices to be worth their weights.
*/
#ifndef MB_CUDA_BACKPROJECT_STAGED_CUH
#define MB_CUDA_BACKPROJECT_STAGED_CUH

#include "backproject_stream.cuh"

template <bool HALF, int S, int AS> struct bp_staged_shape {
    enum { TX = 32, TY = 16, NST = 4, THREADS = TX * TY, C = HALF ? 8 : 4 };
    /* One bin before the first, for rounding may take the bin below an integer coordinate. */
    typedef bp_stage_sizes<TX, TY, 1, 4, S / C, 1, AS, NST> size;
};

template <bool HALF, int S, int AS, int MINB>
__global__ void __launch_bounds__(512, MINB) bp_staged(const __grid_constant__ bp_stream_args p)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    typedef bp_staged_shape<HALF, S, AS> shape;
    typedef typename shape::size size;
    constexpr int C = shape::C, CH = S / C, TX = shape::TX, TY = shape::TY, WARPS = shape::THREADS / 32;
    bp_stream<size> s;
    int block;
    if (!bp_tile_of<TX, TY>(p.job, &s.x0, &s.y0, &block))
        return;
    s.group = block * CH;
    s.angles = p.job.n_angles;
    s.bins = p.job.bins;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int px = (warp % (TX / 8)) * 8 + (lane & 7), py = (warp / (TX / 8)) * 4 + (lane >> 3);
    float sum[S] = {};
    if (!bp_tile_masked(p.job, s.x0, s.y0, TX, TY)) {
        s.init(WARPS);
        for (int it = 0; it * AS < s.angles; it++) {
            s.begin(p, it, warp, WARPS);
            const int st = it % size::NST;
#pragma unroll 2
            for (int j = 0; j < AS; j++) {
                float4 t = bp_shared_load_float(s.table + (st * AS + j) * 16);
                float u = fmaf((float)px, t.x, fmaf((float)py, t.y, t.z));
                float r = (u - 0.5f) + BP_MAGIC, f = u - (r - BP_MAGIC);
                uint32_t at = s.data + st * size::STAGE + j * size::ANGLE - BP_MAGIC_BITS * 16u + __float_as_uint(r) * 16u;
#pragma unroll
                for (int c = 0; c < CH; c++)
                    bp_add<HALF>(sum + C * c, bp_shared_load(at + c * size::SLOT), bp_shared_load(at + c * size::SLOT + 16), f);
            }
            s.end(it);
        }
    }
    const int x = s.x0 + px, y = s.y0 + py;
    if (x >= p.job.nx || y >= p.job.ny)
        return;
    const float scale = HALF ? p.job.scale * p.job.half_scale->y : p.job.scale;
    const bool masked = bp_masked(p.job, x, y);
#pragma unroll
    for (int k = 0; k < S; k++)
        bp_store(p.job, block * S + k, y, x, masked ? p.job.outside : sum[k] * scale);
#endif
}

template <bool HALF, int S, int AS, int MINB> static mb_status bp_staged_launch(const bp_job &job, cudaStream_t stream)
{
    typedef bp_staged_shape<HALF, S, AS> shape;
    return bp_stream_launch<typename shape::size, S>(bp_staged<HALF, S, AS, MINB>, shape::THREADS, job, stream);
}

/* Float packets, at most 16 slices. */
static mb_status bp_staged_floats(const bp_job &job, cudaStream_t stream)
{
    if (job.slices > 8)
        return bp_staged_launch<false, 16, 4, 2>(job, stream);
    if (job.slices > 4)
        return bp_staged_launch<false, 8, 4, 2>(job, stream);
    return bp_staged_launch<false, 4, 8, 2>(job, stream);
}

/* Half packets, at most 8 slices. */
static mb_status bp_staged_halves(const bp_job &job, cudaStream_t stream)
{
    return bp_staged_launch<true, 8, 8, 2>(job, stream);
}

#endif
