/*
** Back-projection of few slices from halves, four at a time, through shared memory: a thread owns
** several pixels.
**
** A packet holds, of one bin of four slices, m = (v[i] + v[i + 1]) / 2 and d = v[i + 1] - v[i] as
** halves; between the bins a slice is m + f d, -0.5 <= f <= 0.5 from their middle. Products with f
** are made in halves. Sums are made by the tensor cores in single precision: a product with a
** matrix of ones and zeros adds m and f d of two pixels and two slices to where each thread keeps
** its sums. A row of that product is one slice of 8 pixels, so that what is not finite spoils these
** and no other slice. The relative L2 error is 4e-5 to 8e-5 on a phantom and 3e-4 on white noise.
*/
#ifndef MB_CUDA_BACKPROJECT_QUAD_CUH
#define MB_CUDA_BACKPROJECT_QUAD_CUH

#include "tomography/backproject_mma.cuh"

/* Grid: packets of an angle, angles, groups. */
__global__ void __launch_bounds__(128)
    bp_pack_quads(bp_source src, uint4 *packets, const __grid_constant__ bp_job job)
{
    const int p = blockIdx.x * blockDim.x + threadIdx.x, b = p - BP_GUARD;
    if (p >= job.row)
        return;
    for (int a = blockIdx.y; a < src.n_angles; a += gridDim.y) {
        float v[8];
#pragma unroll
        for (int z = 0; z < 4; z++) {
            const int slice = 4 * blockIdx.z + z;
            const bool real = slice < src.slices;
            const float *from = src.data + slice * src.stride_z + a * src.stride_a;
            const float factor = real ? job.half_scale[slice].x : 0.0f;
            const float l = real && b >= 0 && b < src.bins ? from[b] * factor : 0.0f;
            const float r = real && b >= -1 && b < src.bins - 1 ? from[b + 1] * factor : 0.0f;
            v[2 * z] = 0.5f * (l + r);
            v[2 * z + 1] = r - l;
        }
        packets[blockIdx.z * job.plane + (int64_t)a * job.row + p] = bp_pack_halves(v);
    }
}

template <class way_, int PX_, int AS_, int NST_, int MINB_>
struct bp_quad_shape {
    enum { TX = 32, TY = 32, PX = PX_, THREADS = TX * TY / PX, MINB = MINB_ };
    typedef way_ way;
    typedef bp_stage_sizes<bp_window_sizes<TX, TY, 1, 4, 1, 1>, way, AS_, NST_, MINB> size;
};

#if BP_ARCH >= 800
__device__ static inline uint32_t bp_times_half(uint32_t a, uint32_t b)
{
    uint32_t v;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
    return v;
}

template <class shape>
__device__ static inline void bp_quad_block(const bp_stream_args &p)
{
    typedef typename shape::size size;
    constexpr int AS = size::AS, PX = shape::PX;
    constexpr int WARPS = shape::THREADS / 32, ACROSS = shape::TX / 8;
    bp_stream<size, typename shape::way> s;
    int block;
    if (!bp_tile_of<shape::TX, shape::TY>(p.job, &s.x0, &s.y0, &block))
        return;
    s.group = block;
    s.angles = p.job.n_angles;
    s.ends = p.job.row - 2 * BP_GUARD;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    /* Of 32 x 4 PX pixels to 4 warps. */
    const int px = (warp % ACROSS) * 8 + (lane & 7), py = (warp / ACROSS) * 4 * PX + (lane >> 3);
    /* Adds two neighbors of a row: from its first half to an even place, from its second to the odd
    ** one behind it. */
    const int to = (lane >> 2) - 2 * (lane & 3);
    const uint32_t ones[2] = {to == 0 ? 0x3C003C00u : 0u, to == 1 ? 0x3C003C00u : 0u};
    /* [two pixels][two slices][slice, pixel] */
    float sum[PX / 2][2][4] = {}, part[PX / 2][2][4] = {};
    if (!bp_tile_masked(p.job, s.x0, s.y0, shape::TX, shape::TY)) {
        s.init(WARPS);
        for (int it = 0; it * AS < s.angles; it++) {
            s.begin(p, it, warp, WARPS);
            const int st = it % size::NST;
#pragma unroll 2
            for (int j = 0; j < AS; j++) {
                const float4 t = bp_shared_load_float(s.table + (st * AS + j) * 16);
                const float first = fmaf((float)px, t.x, fmaf((float)py, t.y, t.z)) - 0.5f;
                const uint32_t line =
                    s.data + st * size::STAGE + j * size::ANGLE - BP_MAGIC_BITS * 16u;
#pragma unroll
                for (int k = 0; k < PX; k += 2) {
                    uint32_t a[2][4];
#pragma unroll
                    for (int i = 0; i < 2; i++) {
                        const float u = fmaf((float)(4 * (k + i)), t.y, first), r = u + BP_MAGIC;
                        const __half2 f = __floats2half2_rn(1.0f, u - (r - BP_MAGIC));
                        const uint4 v = bp_shared_load(line + __float_as_uint(r) * 16u);
                        const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
                        for (int z = 0; z < 4; z++)
                            a[z / 2][2 * i + z % 2] = bp_times_half(w[z], *(const uint32_t *)&f);
                    }
                    bp_mma(part[k / 2][0], a[0], ones);
                    bp_mma(part[k / 2][1], a[1], ones);
                }
            }
            s.end(it);
            if ((it + 1) % (BP_SUM / AS) == 0 || (it + 1) * AS >= s.angles) {
#pragma unroll
                for (int i = 0; i < 4 * PX; i++) {
                    sum[i / 8][i / 4 % 2][i % 4] += part[i / 8][i / 4 % 2][i % 4];
                    part[i / 8][i / 4 % 2][i % 4] = 0.0f;
                }
            }
        }
    }
    const int x = s.x0 + px;
    if (x >= p.job.nx)
        return;
    float scale[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        scale[i] = p.job.scale * p.job.half_scale[min(4 * block + i, p.job.slices - 1)].y;
#pragma unroll
    for (int k = 0; k < PX; k++) {
        const int y = s.y0 + py + 4 * k;
        if (y >= p.job.ny)
            break;
        const bool masked = bp_masked(p.job, x, y);
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (4 * block + i < p.job.slices)
                bp_finish(p.job, 4 * block + i, y, x, masked,
                          sum[k / 2][i / 2][2 * (i % 2) + k % 2] * scale[i]);
    }
}
#endif

template <class shape>
__global__ void __launch_bounds__(shape::THREADS, shape::MINB)
    bp_quad_kernel(const __grid_constant__ bp_stream_args p)
{
#if BP_ARCH >= 800
    if constexpr (BP_ARCH >= shape::way::ARCH)
        bp_quad_block<shape>(p);
#endif
}

template <class way>
static mb_status bp_quad_run(const bp_job &job, cudaStream_t stream)
{
    typedef bp_quad_shape<way, 8, 16, 3, 4> shape;
    return bp_stream_launch<typename shape::size, way, 4>(bp_quad_kernel<shape>, shape::THREADS,
                                                          job, stream);
}

#endif
