/*
** Back-projection of few slices in float32, one or two at a time, through shared memory: a thread
** owns several pixels.
**
** Interpolation between bins i and i + 1 is E + u' D: D = v[i + 1] - v[i], u' the coordinate from
** the middle of a bin at most BP_ORIGIN away, and E what makes it right, so that no fraction has to
** be found. A packet is E and D of two bins of a slice, or of one bin of two slices. Which bin u'
** counts from depends on the window, so every angle has two lines of packets (BP_ORIGIN).
*/
#ifndef MB_CUDA_BACKPROJECT_SINGLE_CUH
#define MB_CUDA_BACKPROJECT_SINGLE_CUH

#include "tomography/backproject_stream.cuh"

/* E and D of a bin that lies `away` bins behind the one counted from. */
__device__ static inline uint2 bp_straight(float here, float next, float away)
{
    const float d = next - here, e = fmaf(-away, d, 0.5f * (here + next));
    return make_uint2(__float_as_uint(e), __float_as_uint(d));
}

/* Grid: packets of a line, lines, groups of SLICES slices. */
template <int SLICES>
__global__ void __launch_bounds__(128)
    bp_pack_lines(bp_source src, uint4 *packets, const __grid_constant__ bp_job job)
{
    constexpr int BINS = 2 / SLICES;
    const int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= job.row)
        return;
    for (int line = blockIdx.y; line < 2 * src.n_angles; line += gridDim.y) {
        const int bin = BINS * (p - BP_GUARD), odd = line & 1;
        /* Both bins of a packet count from the same one: BP_ORIGIN is even. */
        const int half =
            2 * (int)floorf((float)(bin - BP_ORIGIN * odd) * (1.0f / (2 * BP_ORIGIN))) + odd;
        const float away = (float)(bin - (half + 1) * BP_ORIGIN);
        const auto value = [&](int z, int i) {
            return i >= 0 && i < src.bins && z < src.slices
                       ? src.data[z * src.stride_z + (line / 2) * src.stride_a + i]
                       : 0.0f;
        };
        const int z = SLICES * blockIdx.z;
        const float next = value(z, bin + 1);
        const uint2 a = bp_straight(value(z, bin), next, away);
        const uint2 b = SLICES == 1 ? bp_straight(next, value(z, bin + 2), away + 1.0f)
                                    : bp_straight(value(z + 1, bin), value(z + 1, bin + 1), away);
        packets[blockIdx.z * job.plane + (int64_t)line * job.row + p] =
            make_uint4(a.x, a.y, b.x, b.y);
    }
}

template <class way_, int SLICES_, int PX_, int AS_, int NST_, int MINB_>
struct bp_single_shape {
    enum { SLICES = SLICES_, TX = 32, TY = 32, PX = PX_, THREADS = TX * TY / PX, MINB = MINB_ };
    enum { STEP = TY / PX }; /* rows between a thread's pixels */
    typedef way_ way;
    typedef bp_window_sizes<TX, TY, 1, 4, 1, 1, 2 / SLICES, true> window;
    typedef bp_stage_sizes<window, way, AS_, NST_, MINB> size;
    static_assert(window::WIDE <= BP_ORIGIN, "a window lies in one line");
};

#if BP_ARCH >= 800
__device__ static inline float2 bp_shared_load_pair(uint32_t at)
{
    float2 v;
    asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(at));
    return v;
}

template <class shape>
__device__ static inline void bp_single_block(const bp_stream_args &p)
{
    typedef typename shape::size size;
    constexpr int AS = size::AS, PX = shape::PX, STEP = shape::STEP, SLICES = shape::SLICES;
    constexpr int WARPS = shape::THREADS / 32, ACROSS = shape::TX / 8;
    bp_stream<size, typename shape::way> s;
    int block;
    if (!bp_tile_of<shape::TX, shape::TY>(p.job, &s.x0, &s.y0, &block))
        return;
    s.group = block;
    s.angles = p.job.n_angles;
    s.ends = p.job.row - 2 * BP_GUARD;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int px = (warp % ACROSS) * 8 + (lane & 7), py = (warp / ACROSS) * 4 + (lane >> 3);
    float sum[PX][SLICES] = {}, part[PX][SLICES] = {};
    if (!bp_tile_masked(p.job, s.x0, s.y0, shape::TX, shape::TY)) {
        s.init(WARPS);
        for (int it = 0; it * AS < s.angles; it++) {
            s.begin(p, it, warp, WARPS);
            const int st = it % size::NST;
#pragma unroll 2
            for (int j = 0; j < AS; j++) {
                const float4 t = bp_shared_load_float(s.table + (st * AS + j) * 16);
                const float first = fmaf((float)px, t.x, fmaf((float)py, t.y, t.z));
                const uint32_t line = s.data + st * size::STAGE + j * size::ANGLE +
                                      __float_as_int(t.w) - BP_MAGIC_BITS * (8u * SLICES);
#pragma unroll
                for (int k = 0; k < PX; k++) {
                    const float u = fmaf((float)(STEP * k), t.y, first);
                    const uint32_t at = line + __float_as_uint(u + BP_MAGIC) * (8u * SLICES);
                    if constexpr (SLICES == 1) {
                        const float2 v = bp_shared_load_pair(at);
                        part[k][0] += fmaf(u, v.y, v.x);
                    } else {
                        const float4 v = bp_shared_load_float(at);
                        part[k][0] += fmaf(u, v.y, v.x);
                        part[k][1] += fmaf(u, v.w, v.z);
                    }
                }
            }
            s.end(it);
            if ((it + 1) % (BP_SUM / AS) == 0 || (it + 1) * AS >= s.angles) {
#pragma unroll
                for (int i = 0; i < PX * SLICES; i++) {
                    sum[i / SLICES][i % SLICES] += part[i / SLICES][i % SLICES];
                    part[i / SLICES][i % SLICES] = 0.0f;
                }
            }
        }
    }
    const int x = s.x0 + px;
    if (x >= p.job.nx)
        return;
#pragma unroll
    for (int k = 0; k < PX; k++) {
        const int y = s.y0 + py + STEP * k;
        if (y >= p.job.ny)
            break;
        const bool masked = bp_masked(p.job, x, y);
#pragma unroll
        for (int i = 0; i < SLICES; i++)
            if (SLICES * block + i < p.job.slices)
                bp_finish(p.job, SLICES * block + i, y, x, masked, sum[k][i] * p.job.scale);
    }
}
#endif

template <class shape>
__global__ void __launch_bounds__(shape::THREADS, shape::MINB)
    bp_single_kernel(const __grid_constant__ bp_stream_args p)
{
#if BP_ARCH >= 800
    if constexpr (BP_ARCH >= shape::way::ARCH)
        bp_single_block<shape>(p);
#endif
}

template <class shape>
static mb_status bp_single_launch(const bp_job &job, cudaStream_t stream)
{
    return bp_stream_launch<typename shape::size, typename shape::way, shape::SLICES>(
        bp_single_kernel<shape>, shape::THREADS, job, stream);
}

template <class way>
static mb_status bp_single_run(bool pairs, const bp_job &job, cudaStream_t stream)
{
    return pairs ? bp_single_launch<bp_single_shape<way, 2, 8, 16, 3, 5>>(job, stream)
                 : bp_single_launch<bp_single_shape<way, 1, 8, 16, 3, 8>>(job, stream);
}

#endif
