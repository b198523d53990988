/*
** Back-projection through shared memory by ordinary arithmetic, for float packets of at most 8
** slices: a thread owns one pixel and S slices in registers, reads two neighboring packets per
** group and interpolates them. More slices go to the tensor cores (backproject_mma.cuh).
*/
#ifndef MB_CUDA_BACKPROJECT_STAGED_CUH
#define MB_CUDA_BACKPROJECT_STAGED_CUH

#include "tomography/backproject_stream.cuh"

template <class way_, int S_, int AS_>
struct bp_staged_shape {
    enum { S = S_, TX = 32, TY = 16, THREADS = TX * TY, C = 4, MINB = 2 };
    typedef way_ way;
    /* One bin before the first, for rounding may take the bin below an integer coordinate. */
    typedef bp_stage_sizes<bp_window_sizes<TX, TY, 1, 4, S / C, 1>, way, AS_, 4, MINB> size;
};

#if BP_ARCH >= 800
template <class shape>
__device__ static inline void bp_staged_block(const bp_stream_args &p)
{
    typedef typename shape::size size;
    constexpr int S = shape::S, AS = size::AS, C = shape::C, CH = S / C;
    constexpr int TX = shape::TX, TY = shape::TY, WARPS = shape::THREADS / 32;
    bp_stream<size, typename shape::way> s;
    int block;
    if (!bp_tile_of<TX, TY>(p.job, &s.x0, &s.y0, &block))
        return;
    s.group = block * CH;
    s.angles = p.job.n_angles;
    s.bins = p.job.bins;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int px = (warp % (TX / 8)) * 8 + (lane & 7), py = (warp / (TX / 8)) * 4 + (lane >> 3);
    float sum[S] = {}, part[S] = {}; /* sums of sums: rounding grows with a sum's length */
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
                uint32_t bits = __float_as_uint(r) - BP_MAGIC_BITS;
                uint32_t at = s.data + st * size::STAGE + j * size::ANGLE + bits * 16u;
#pragma unroll
                for (int c = 0; c < CH; c++)
                    bp_add<false>(part + C * c, bp_shared_load(at + c * size::SLOT),
                                  bp_shared_load(at + c * size::SLOT + 16), f);
            }
            s.end(it);
            if ((it + 1) % (64 / AS) == 0 || (it + 1) * AS >= s.angles) {
#pragma unroll
                for (int k = 0; k < S; k++) {
                    sum[k] += part[k];
                    part[k] = 0.0f;
                }
            }
        }
    }
    const int x = s.x0 + px, y = s.y0 + py;
    if (x >= p.job.nx || y >= p.job.ny)
        return;
    const bool masked = bp_masked(p.job, x, y);
#pragma unroll
    for (int k = 0; k < S; k++)
        bp_store(p.job, block * S + k, y, x, masked ? p.job.outside : sum[k] * p.job.scale);
}
#endif

template <class shape>
__global__ void __launch_bounds__(shape::THREADS, shape::MINB)
    bp_staged(const __grid_constant__ bp_stream_args p)
{
#if BP_ARCH >= 800
    if constexpr (BP_ARCH >= shape::way::ARCH)
        bp_staged_block<shape>(p);
#endif
}

template <class shape>
static mb_status bp_staged_launch(const bp_job &job, cudaStream_t stream)
{
    return bp_stream_launch<typename shape::size, typename shape::way, shape::S>(
        bp_staged<shape>, shape::THREADS, job, stream);
}

/* Float packets, at most 8 slices. */
template <class way>
static mb_status bp_staged_run(const bp_job &job, cudaStream_t stream)
{
    return job.slices > 4 ? bp_staged_launch<bp_staged_shape<way, 8, 4>>(job, stream)
                          : bp_staged_launch<bp_staged_shape<way, 4, 8>>(job, stream);
}

#endif
