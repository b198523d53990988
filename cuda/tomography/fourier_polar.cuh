/*
** Samples and rows of fourier_project on CUDA: the transposes of fourier_gather.cuh and of the last
** steps of fourier_rows.cuh.
**
** A thread reads a sample of V pairs, which lie side by side, by W x W cells around it, and goes on
** to the next V pairs with the same weights. The lanes of a warp are 8 samples of 4 neighboring
** rays, whatever the direction of the rays: few lines of the grid for one tap of all. Positions
** k * kappa * direction are formed by fused multiply-adds with a direction in two floats: exact to
** 1e-7 cells.
*/
#ifndef MB_CUDA_FOURIER_POLAR_CUH
#define MB_CUDA_FOURIER_POLAR_CUH

#include "tomography/fourier_gather.cuh"
#include "tomography/fourier_rows.cuh"

#define FOURIER_POLAR_RAYS 8     /* of a block of 256 threads */
#define FOURIER_POLAR_SAMPLES 32 /* of a ray, at a time */
#define FOURIER_POLAR_TIMES 4
#define FOURIER_WINDOW 7

struct fourier_polar_job {
    mb_gridding g;
    const float4 *rays; /* two to a ray */
    const mb_fourier_angle *angles;
    const float2 *cells; /* [pair / V][slow][fast][V], frequency 0 in the middle */
    float2 *samples;     /* [pair][angle][N], in the order of a transform */
    int n, pairs;        /* pairs: a multiple of V */
};

/* The first of the W cells that a sample k reads along an axis, and their weights. */
template <int DEGREE>
__device__ static __forceinline__ int fourier_weights(const mb_gridding &g, float k, float high,
                                                      float low, float (&weight)[FOURIER_WINDOW])
{
    int first = (int)ceilf(fmaf(k, high, -g.half));
    float d = fmaf(-k, low, fmaf(-k, high, (float)first));
    /* Rounding of the product may have moved it by a cell. */
    if (d < -g.half) {
        first++;
        d += 1.0f;
    } else if (d >= 1.0f - g.half) {
        first--;
        d -= 1.0f;
    }
#pragma unroll
    for (int i = 0; i < FOURIER_WINDOW; i++)
        weight[i] = fourier_window<DEGREE>(g, d + (float)i);
    return first;
}

/* A cell of the periodic grid: -G ... 2 G - 1 -> 0 ... G - 1. */
__device__ static __forceinline__ int fourier_around(int cell, int grid)
{
    return cell < 0 ? cell + grid : cell >= grid ? cell - grid : cell;
}

/* Sums of V pairs, those of the group whose cells these are. */
template <int V>
__device__ static __forceinline__ void
fourier_taps(const float2 *cells, int grid, int slow, const int (&fast)[FOURIER_WINDOW],
             const float (&ws)[FOURIER_WINDOW], const float (&wf)[FOURIER_WINDOW],
             float (&sum)[2 * V])
{
#pragma unroll
    for (int c = 0; c < 2 * V; c++)
        sum[c] = 0;
#pragma unroll
    for (int j = 0; j < FOURIER_WINDOW; j++) {
        const float2 *line = cells + (int64_t)fourier_around(slow + j, grid) * grid * V;
        float part[2 * V] = {};
#pragma unroll
        for (int i = 0; i < FOURIER_WINDOW; i++) {
            if constexpr (V == 2) {
                const float4 value = __ldg((const float4 *)(line + fast[i]));
                part[0] = fmaf(wf[i], value.x, part[0]);
                part[1] = fmaf(wf[i], value.y, part[1]);
                part[2] = fmaf(wf[i], value.z, part[2]);
                part[3] = fmaf(wf[i], value.w, part[3]);
            } else {
                const float2 value = __ldg(line + fast[i]);
                part[0] = fmaf(wf[i], value.x, part[0]);
                part[1] = fmaf(wf[i], value.y, part[1]);
            }
        }
#pragma unroll
        for (int c = 0; c < 2 * V; c++)
            sum[c] = fmaf(ws[j], part[c], sum[c]);
    }
}

template <int V, int DEGREE>
__global__ void __launch_bounds__(256, 3)
    fourier_polar(const __grid_constant__ fourier_polar_job job)
{
    const mb_gridding &g = job.g;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, grid = g.grid, n = job.n;
    const int ray = blockIdx.x * FOURIER_POLAR_RAYS + (warp >> 2) * 4 + (lane >> 3);
    const int first =
        blockIdx.y * (FOURIER_POLAR_SAMPLES * FOURIER_POLAR_TIMES) + (warp & 3) * 8 + (lane & 7);
    if (ray >= g.rays)
        return;
    const float4 a = job.rays[2 * ray], b = job.rays[2 * ray + 1];
    const int angle = __float_as_int(b.w);
    const mb_fourier_angle place = job.angles[angle];
    const double turn = place.axis / (double)n;
    const int64_t plane = (int64_t)grid * grid * V, row = (int64_t)g.rays * n;
#pragma unroll 1
    for (int time = 0; time < FOURIER_POLAR_TIMES; time++) {
        const int at = first + time * FOURIER_POLAR_SAMPLES, k = at - n / 2;
        float2 *to = job.samples + (int64_t)angle * n + (k < 0 ? k + n : k);
        if (at >= n)
            break;
        if (at == 0 || place.weight == 0) { /* the lowest frequency has no partner */
            for (int pair = 0; pair < job.pairs; pair++)
                to[pair * row] = make_float2(0, 0);
            continue;
        }
        float wf[FOURIER_WINDOW], ws[FOURIER_WINDOW];
        int fast[FOURIER_WINDOW];
        const int f = fourier_weights<DEGREE>(g, (float)k, a.x, b.x, wf) + grid / 2,
                  s = fourier_weights<DEGREE>(g, (float)k, a.y, b.y, ws) + grid / 2;
#pragma unroll
        for (int i = 0; i < FOURIER_WINDOW; i++)
            fast[i] = fourier_around(f + i, grid) * V;
        /* Backwards: the phase of the adjoint is exp(2 pi i k axis / N). */
        const double turns = -(double)k * turn;
        const float2 phase = fourier_turn((float)(2 * (turns - rint(turns))));
        const float2 *cells = job.cells;
#pragma unroll 1
        for (int pair = 0; pair < job.pairs; pair += V, cells += plane) {
            float sum[2 * V];
            fourier_taps<V>(cells, grid, s, fast, ws, wf, sum);
#pragma unroll
            for (int p = 0; p < V; p++)
                to[(pair + p) * row] =
                    fourier_times(make_float2(sum[2 * p], sum[2 * p + 1]), phase);
        }
    }
}

template <int V>
static mb_status fourier_polar_as(const fourier_polar_job &job, cudaStream_t stream)
{
    const int part = FOURIER_POLAR_SAMPLES * FOURIER_POLAR_TIMES;
    const dim3 blocks((unsigned)((job.g.rays + FOURIER_POLAR_RAYS - 1) / FOURIER_POLAR_RAYS),
                      (unsigned)((job.n + part - 1) / part));
    if (job.g.degree == MB_FOURIER_FAST_DEGREE)
        fourier_polar<V, MB_FOURIER_FAST_DEGREE><<<blocks, 256, 0, stream>>>(job);
    else
        fourier_polar<V, MB_GRIDDING_DEGREE><<<blocks, 256, 0, stream>>>(job);
    MB_LAUNCHED("fourier_polar");
    return MB_STATUS_OK;
}

/* Rows from their samples: an inverse transform, of which the first cols points are kept. */
struct fourier_back_job {
    const float2 *samples; /* [pair][angle][N] */
    fourier_rows to;
    int angles, cols, kept; /* kept = N / T */
};

template <int T>
__global__ void __launch_bounds__(T, T >= 1024 ? 1 : FOURIER_ROWS_THREADS / (T > 64 ? T : 64))
    fourier_row_back(const __grid_constant__ fourier_back_job job)
{
    extern __shared__ float2 fourier_shared[];
    using R = fourier_radices<T>;
    constexpr int H = FOURIER_HELD, LAST = R::C > 1 ? R::C : R::B, Q = H / LAST;
    const int t = threadIdx.x, a = blockIdx.x, points = job.kept * T, step = points / LAST;
    const int64_t pair = blockIdx.y;
    const float2 *from = job.samples + (pair * job.angles + a) * points;
    const bool two = 2 * pair + 1 < job.to.slices;
    float2 v[H];
    if (2 * pair >= job.to.slices)
        return;
#pragma unroll
    for (int e = 0; e < H; e++)
        v[e] = e < job.kept ? __ldcs(from + t + T * e) : make_float2(0, 0);
    fourier_first<T, 1>(v, t, job.kept, fourier_shared);
    fourier_passes<T, 1, false>(v, t, job.kept, points, fourier_shared, 0);
    float *even = (float *)row_of(job.to, 2 * pair, a),
          *odd = (float *)row_of(job.to, two ? 2 * pair + 1 : 2 * pair, a);
#pragma unroll
    for (int k = 0; k < Q; k++) {
        const int b = t + T * k;
        if (b >= step)
            break;
#pragma unroll
        for (int r = 0; r < LAST; r++) {
            const int column = b + r * step;
            if (column >= job.cols)
                continue;
            even[column] = v[k + Q * r].x;
            if (two)
                odd[column] = v[k + Q * r].y;
        }
    }
}

template <int T>
static mb_status fourier_back_as(const fourier_back_job &job, int64_t pairs, cudaStream_t stream)
{
    const int bytes = fourier_room(job.kept * T) * (int)sizeof(float2);
    MB_CUDA(cudaFuncSetAttribute(fourier_row_back<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 bytes));
    fourier_row_back<T><<<dim3((unsigned)job.angles, (unsigned)pairs), T, bytes, stream>>>(job);
    MB_LAUNCHED("fourier_row_back");
    return MB_STATUS_OK;
}

static mb_status fourier_back(const fourier_back_job &job, int threads, int64_t pairs,
                              cudaStream_t stream)
{
    switch (threads) {
    case 32: return fourier_back_as<32>(job, pairs, stream);
    case 64: return fourier_back_as<64>(job, pairs, stream);
    case 128: return fourier_back_as<128>(job, pairs, stream);
    case 256: return fourier_back_as<256>(job, pairs, stream);
    case 512: return fourier_back_as<512>(job, pairs, stream);
    default: return fourier_back_as<1024>(job, pairs, stream);
    }
}

#endif
