/*
** Back-projection on the tensor cores (mma.sync m16n8k16: halves in, single-precision sums).
**
** A sub-tile of 4 x 4 pixels sees at most 7 neighboring bins at any angle, so that
**     image[16 pixels][8 slices]
**         += weights[16 pixels][2 angles x 8 bins] * packets[2 angles x 8 bins][8 slices]
** is one product. The weights, max(0, 1 - |distance to the bin|), are made in the registers where
** the product wants them; the packets come out of the pipeline's windows by ldmatrix, at any first
** bin. A warp owns NSX sub-tiles side by side and all S slices of the block; a step is one sub-tile
** and one pair of angles.
**
**   fast    weights and data rounded to halves: relative L2 error 3e-5 to 9e-5 on a phantom, 3e-4
**           on white noise
**   exact   weights and data split into high and low halves, three products (low * low is below
**           single precision): 5e-7 and 2e-6
**
** The tensor cores truncate their sums, which shrinks them by some 1e-8 an angle. So the exact
** kernel moves them into ordinary registers every FLUSH angles; the fast one, which has none left,
** gets MB_BACKPROJECT_CUDA_LONG angles at most.
**
** A bin that is not finite spoils up to 7 pixels on either side of its line, not just the two bins'
** width that it would in ordinary arithmetic: its weight of zero does not silence it.
*/
#ifndef MB_CUDA_BACKPROJECT_MMA_CUH
#define MB_CUDA_BACKPROJECT_MMA_CUH

#include "tomography/backproject_stream.cuh"

#define BP_BLOCK 64 /* slices of a full block */

/* S slices; NSX sub-tiles a warp; WX x WY warps; AS and NST: stages wanted (see bp_stage_sizes); at
** least MINB blocks a multiprocessor; SPLIT: the exact kernel. PIPE: fetch the fragments of the
** next step before the products of this one; FLUSH: angles after which sums move to registers, 0:
** never. Results depend on the tile and FLUSH, not on the slices of a block, the stages or the way
** to copy. */
template <class way_, int S_, int NSX_, int WX_, int WY_, int AS_, int NST_, int MINB_, bool SPLIT_>
struct bp_mma_shape {
    enum {
        S = S_,
        NSX = NSX_,
        WX = WX_,
        WY = WY_,
        MINB = MINB_,
        SPLIT = SPLIT_,
        PIPE = !SPLIT_,
        FLUSH = SPLIT_ ? 16 : 0,
        CH = S / 8,
        TX = 4 * NSX * WX,
        TY = 4 * WY,
        WARPS = WX * WY,
        PLANES = SPLIT ? 2 : 1
    };
    typedef way_ way;
    /* The first bin of a sub-tile lies up to 3.5 before its middle, which is at least 1.5 behind
    ** the tile's first pixel. */
    typedef bp_window_sizes<TX, TY, 2, 7, CH, PLANES> window;
    typedef bp_stage_sizes<window, way, AS_, NST_, MINB> size;
    enum { AS = size::AS, STEPS = NSX * AS / 2 };
    static_assert(CH % 2 == 0 && AS % 2 == 0, "pairs of groups, pairs of angles");
    static_assert(FLUSH % AS == 0, "sums move after a whole stage");
};

#if BP_ARCH >= 800

__device__ static inline void bp_mma(float *sum, const uint32_t *a, const uint32_t *b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ static inline void bp_load_matrices(uint32_t *b, uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "r"(at));
}

/* Weights of two neighboring bins, the first at distance d; rounded once, at the end. */
__device__ static inline uint32_t bp_weights(float d)
{
    __half2 w =
        __floats2half2_rn(__saturatef(1.0f - fabsf(d)), __saturatef(1.0f - fabsf(d - 1.0f)));
    return *(const uint32_t *)&w;
}

/* The same, split: returns the high halves. */
__device__ static inline uint32_t bp_weights_split(float d, uint32_t *low)
{
    float a = __saturatef(1.0f - fabsf(d)), b = __saturatef(1.0f - fabsf(d - 1.0f));
    __half2 h = __floats2half2_rn(a, b),
            l = __floats2half2_rn(a - __low2float(h), b - __high2float(h));
    *low = *(const uint32_t *)&l;
    return *(const uint32_t *)&h;
}

/* What one step feeds to the tensor cores. */
template <class shape>
struct bp_fragments {
    uint32_t high[4], low[shape::SPLIT ? 4 : 1];
    uint32_t packets[shape::PLANES][shape::CH][2];
};

template <class shape>
__device__ static inline void bp_mma_block(const bp_stream_args &p)
{
    typedef typename shape::size size;
    constexpr int CH = shape::CH, NSX = shape::NSX, AS = shape::AS;
    constexpr int STEPS = shape::STEPS, FLUSH = shape::FLUSH;
    bp_stream<size, typename shape::way> s;
    int block;
    if (!bp_tile_of<shape::TX, shape::TY>(p.job, &s.x0, &s.y0, &block))
        return;
    s.group = block * CH;
    s.angles = p.job.n_angles;
    s.ends = p.job.row - 2 * BP_GUARD;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int sx = (warp % shape::WX) * NSX * 4, sy = (warp / shape::WX) * 4;
    const int px = (lane >> 2) & 3, py = lane >> 4; /* and py + 2 */
    float acc[NSX][CH][4] = {}, sum[FLUSH ? NSX : 1][CH][4] = {};
    if (!bp_tile_masked(p.job, s.x0, s.y0, shape::TX, shape::TY)) {
        s.init(shape::WARPS);
        const float cx = sx + 1.5f, cy = sy + 1.5f;
        const float fx = px - 1.5f, fy = py - 1.5f, bin = -2.0f * (lane & 3);
        /* ldmatrix: lanes 8 to 15 and 24 to 31 fetch the second angle, 16 to 31 the next group. */
        const bool second = lane & 8;
        const uint32_t mine = s.data + (second ? size::ANGLE : 0) + (lane >> 4) * size::GROUP +
                              (lane & 7) * 16 - BP_MAGIC_BITS * 16u;
        float4 t0, t1;
        float c0, c1, e0, e1, h0, h1;
        bp_fragments<shape> f[shape::PIPE ? 2 : 1];
        int st = 0;
        auto prepare = [&](int step, bp_fragments<shape> &to) {
            const int j = step / NSX * 2, k = step % NSX;
            /* Middle of the first sub-tile; this thread's pixels and bins seen from a middle. */
            if (k == 0) {
                t0 = bp_shared_load_float(s.table + (st * AS + j) * 16);
                t1 = bp_shared_load_float(s.table + (st * AS + j) * 16 + 16);
                c0 = fmaf(cx, t0.x, fmaf(cy, t0.y, t0.z));
                c1 = fmaf(cx, t1.x, fmaf(cy, t1.y, t1.z));
                e0 = fmaf(fx, t0.x, fmaf(fy, t0.y, bin));
                e1 = fmaf(fx, t1.x, fmaf(fy, t1.y, bin));
                h0 = fmaf(2.0f, t0.y, e0);
                h1 = fmaf(2.0f, t1.y, e1);
            }
            const float u0 = fmaf(4.0f * k, t0.x, c0), u1 = fmaf(4.0f * k, t1.x, c1);
            const float r0 = u0 + (BP_MAGIC - 3.0f), r1 = u1 + (BP_MAGIC - 3.0f);
            const float f0 = u0 - (r0 - BP_MAGIC), f1 = u1 - (r1 - BP_MAGIC);
            const uint32_t bits = __float_as_uint(second ? r1 : r0);
            const uint32_t at = mine + st * size::STAGE + j * size::ANGLE + bits * 16u;
#pragma unroll
            for (int q = 0; q < shape::PLANES; q++)
#pragma unroll
                for (int c = 0; c < CH; c += 2)
                    bp_load_matrices(to.packets[q][c], at + c * size::GROUP + q * size::SLOT);
            const float d[4] = {f0 + e0, f0 + h0, f1 + e1, f1 + h1};
#pragma unroll
            for (int i = 0; i < 4; i++)
                to.high[i] = shape::SPLIT ? bp_weights_split(d[i], &to.low[shape::SPLIT ? i : 0])
                                          : bp_weights(d[i]);
        };
        auto multiply = [&](int step, const bp_fragments<shape> &from) {
            const int k = step % NSX;
            /* All of one product before the next: no product waits for the sums of the last. */
#pragma unroll
            for (int q = 0; q < (shape::SPLIT ? 3 : 1); q++)
#pragma unroll
                for (int c = 0; c < CH; c++)
                    bp_mma(acc[k][c], q == 1 ? from.low : from.high,
                           from.packets[q == 2 ? 1 % shape::PLANES : 0][c]);
        };
        for (int it = 0; it * AS < s.angles; it++) {
            s.begin(p, it, warp, shape::WARPS);
            st = it % size::NST;
            prepare(0, f[0]);
#pragma unroll
            for (int step = 0; step < STEPS; step++) {
                if (shape::PIPE && step + 1 < STEPS)
                    prepare(step + 1, f[shape::PIPE ? (step + 1) & 1 : 0]);
                multiply(step, f[shape::PIPE ? step & 1 : 0]);
                if (!shape::PIPE && step + 1 < STEPS)
                    prepare(step + 1, f[0]);
            }
            s.end(it);
            if (FLUSH && (it + 1) % (FLUSH ? FLUSH / AS : 1) == 0)
#pragma unroll
                for (int i = 0; i < NSX * CH * 4; i++) {
                    const int k = i / (CH * 4), c = i / 4 % CH;
                    sum[FLUSH ? k : 0][c][i % 4] += acc[k][c][i % 4];
                    acc[k][c][i % 4] = 0;
                }
        }
    }
    float scale[2 * CH]; /* all loaded before the first store waits for one */
#pragma unroll
    for (int l = 0; l < 2 * CH; l++) {
        const int z = block * shape::S + l / 2 * 8 + (lane & 3) * 2 + l % 2;
        scale[l] = p.job.scale * p.job.half_scale[min(z, p.job.slices - 1)].y;
    }
#pragma unroll
    for (int i = 0; i < 2 * NSX; i++) {
        const int x = s.x0 + sx + 4 * (i / 2) + px, y = s.y0 + sy + py + 2 * (i % 2);
        if (x >= p.job.nx || y >= p.job.ny)
            continue;
        const bool masked = bp_masked(p.job, x, y);
#pragma unroll
        for (int l = 0; l < 2 * CH; l++) {
            const int z = block * shape::S + l / 2 * 8 + (lane & 3) * 2 + l % 2;
            float v = acc[i / 2][l / 2][2 * (i % 2) + l % 2];
            if (FLUSH)
                v += sum[FLUSH ? i / 2 : 0][l / 2][2 * (i % 2) + l % 2];
            if (z < p.job.slices)
                bp_finish(p.job, z, y, x, masked, v * scale[l]);
        }
    }
}
#endif

template <class shape>
__global__ void __launch_bounds__(shape::WARPS * 32, shape::MINB)
    bp_mma_kernel(const __grid_constant__ bp_stream_args p)
{
#if BP_ARCH >= 800
    if constexpr (BP_ARCH >= shape::way::ARCH)
        bp_mma_block<shape>(p);
#endif
}

template <class shape>
static mb_status bp_mma_launch(const bp_job &job, cudaStream_t stream)
{
    constexpr int threads = shape::WARPS * 32;
    return bp_stream_launch<typename shape::size, typename shape::way, shape::S>(
        bp_mma_kernel<shape>, threads, job, stream);
}

/* Blocks of 64 slices, or one smaller block. All are of one tile, so that they give the same bits;
** the rest is the fastest found on an H200. Stages copied by lanes have less room. */
template <class way>
static mb_status bp_mma_fast(const bp_job &job, cudaStream_t stream)
{
    constexpr bool M = way::MAP;
    if (job.slices > 48)
        return bp_mma_launch<bp_mma_shape<way, 64, 4, 2, 4, 8, 4, 1, false>>(job, stream);
    if (job.slices > 32)
        return bp_mma_launch<bp_mma_shape<way, 48, 4, 2, 4, 8, 4, 1, false>>(job, stream);
    if (job.slices > 16)
        return bp_mma_launch<bp_mma_shape<way, 32, 4, 2, 4, 8, 4, M ? 2 : 1, false>>(job, stream);
    return bp_mma_launch<bp_mma_shape<way, 16, 4, 2, 4, M ? 16 : 8, M ? 3 : 4, 2, false>>(job,
                                                                                          stream);
}

template <class way>
static mb_status bp_mma_exact(const bp_job &job, cudaStream_t stream)
{
    constexpr bool M = way::MAP;
    if (job.slices > 48)
        return bp_mma_launch<bp_mma_shape<way, 64, 2, 2, 4, 8, 3, 1, true>>(job, stream);
    if (job.slices > 32)
        return bp_mma_launch<bp_mma_shape<way, 48, 2, 2, 4, 8, 3, 1, true>>(job, stream);
    if (job.slices > 16)
        return bp_mma_launch<bp_mma_shape<way, 32, 2, 2, 4, 8, 3, M ? 2 : 1, true>>(job, stream);
    return bp_mma_launch<bp_mma_shape<way, 16, 2, 2, 4, M ? 16 : 8, 3, 2, true>>(job, stream);
}

#endif
