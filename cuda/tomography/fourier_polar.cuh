/*
** Samples and rows of fourier_project on CUDA: the transposes of fourier_gather.cuh and of the last
** steps of fourier_rows.cuh.
**
** V pairs lie side by side, and a sample is the sum of W x W of their cells. A thread has a sample of
** two of the pairs, or of the only one, and its neighbors have those of the others: what limits
** this kernel are the lines of the cache that a tap of a warp touches, and so they are few. The
** lanes of a warp are 8 samples of one ray, or of 2 or 4 neighboring rays where there are fewer
** pairs, whatever the direction of the rays. Where each pair has a grid of its own (V = 1) a thread
** goes on to the next one with the same weights. Positions k * kappa * direction are formed by
** fused multiply-adds with a direction in two floats: exact to 1e-7 cells.
*/
#ifndef MB_CUDA_FOURIER_POLAR_CUH
#define MB_CUDA_FOURIER_POLAR_CUH

#include "tomography/fourier_gather.cuh"
#include "tomography/fourier_rows.cuh"

#define FOURIER_POLAR_RAYS 8     /* of a block of 256 threads */
#define FOURIER_POLAR_SAMPLES 32 /* of each of them; few, so that blocks end together */
#define FOURIER_WINDOW 7

struct fourier_polar_job {
    mb_gridding g;
    const float4 *rays; /* two to a ray */
    const mb_fourier_angle *angles;
    const float2 *cells; /* [slow][fast][V], or [pair][slow][fast], frequency 0 in the middle */
    float2 *samples;     /* [pair][angle][N], in the order of a transform */
    int n, pairs;        /* pairs: V, or of so many grids */
};

/* The first of the W cells that a sample k reads along an axis; d is where it lies from the sample. */
__device__ static __forceinline__ int fourier_reach(const mb_gridding &g, float k, float high,
                                                    float low, float *d)
{
    int first = (int)ceilf(fmaf(k, high, -g.half));
    *d = fmaf(-k, low, fmaf(-k, high, (float)first));
    /* Rounding of the product may have moved it by a cell. */
    if (*d < -g.half) {
        first++;
        *d += 1.0f;
    } else if (*d >= 1.0f - g.half) {
        first--;
        *d -= 1.0f;
    }
    return first;
}

/* A cell of the periodic grid: -G ... 2 G - 1 -> 0 ... G - 1. */
__device__ static __forceinline__ int fourier_around(int cell, int grid)
{
    return cell < 0 ? cell + grid : cell >= grid ? cell - grid : cell;
}

/* Sums of two of V pairs, or of the only one, whose cells these are. Line by line of the grid, not
** unrolled: else the loads of all lines come first and do not fit into registers. */
template <int V, int DEGREE>
__device__ static __forceinline__ void
fourier_taps(const mb_gridding &g, const float2 *cells, int slow, float d,
             const int (&fast)[FOURIER_WINDOW], const float (&weight)[FOURIER_WINDOW],
             float (&sum)[V > 1 ? 4 : 2])
{
    constexpr int PARTS = V > 1 ? 4 : 2;
#pragma unroll
    for (int c = 0; c < PARTS; c++)
        sum[c] = 0;
#pragma unroll 1
    for (int j = 0; j < FOURIER_WINDOW; j++) {
        const float2 *line = cells + (int64_t)fourier_around(slow + j, g.grid) * g.grid * V;
        const float along = fourier_window<DEGREE>(g, d + (float)j);
        float part[PARTS] = {};
#pragma unroll
        for (int i = 0; i < FOURIER_WINDOW; i++) {
            if constexpr (V > 1) {
                const float4 value = __ldg((const float4 *)(line + fast[i]));
                part[0] = fmaf(weight[i], value.x, part[0]);
                part[1] = fmaf(weight[i], value.y, part[1]);
                part[2] = fmaf(weight[i], value.z, part[2]);
                part[3] = fmaf(weight[i], value.w, part[3]);
            } else {
                const float2 value = __ldg(line + fast[i]);
                part[0] = fmaf(weight[i], value.x, part[0]);
                part[1] = fmaf(weight[i], value.y, part[1]);
            }
        }
#pragma unroll
        for (int c = 0; c < PARTS; c++)
            sum[c] = fmaf(along, part[c], sum[c]);
    }
}

template <int V, int DEGREE>
__global__ void __launch_bounds__(256, 3)
    fourier_polar(const __grid_constant__ fourier_polar_job job)
{
    /* Threads of a sample; rays of a warp; warps side by side along a ray. */
    constexpr int SIDE = V > 2 ? V / 2 : 1, RAYS = 4 / SIDE, ALONG = RAYS, STEP = 8 * ALONG,
                  OWN = V > 1 ? 2 : 1;
    static_assert(8 / ALONG * RAYS == FOURIER_POLAR_RAYS, "8 warps");
    const mb_gridding &g = job.g;
    const int grid = g.grid, n = job.n, side = threadIdx.x % SIDE, lane = (threadIdx.x & 31) / SIDE,
              warp = threadIdx.x >> 5;
    const int ray = blockIdx.x * FOURIER_POLAR_RAYS + warp / ALONG * RAYS + (lane >> 3);
    const int first = blockIdx.y * FOURIER_POLAR_SAMPLES + warp % ALONG * 8 + (lane & 7);
    if (ray >= g.rays)
        return;
    const float4 a = job.rays[2 * ray], b = job.rays[2 * ray + 1];
    const int angle = __float_as_int(b.w);
    const mb_fourier_angle place = job.angles[angle];
    const double turn = place.axis / (double)n;
    const int64_t plane = (int64_t)grid * grid * V, row = (int64_t)g.rays * n;
#pragma unroll 1
    for (int time = 0; time < FOURIER_POLAR_SAMPLES / STEP; time++) {
        const int at = first + time * STEP, k = at - n / 2;
        float2 *to = job.samples + (int64_t)angle * n + (k < 0 ? k + n : k);
        if (at >= n)
            break;
        if (at == 0 || place.weight == 0) { /* the lowest frequency has no partner */
            for (int pair = OWN * side; pair < job.pairs; pair += V)
                for (int p = 0; p < OWN; p++)
                    to[(pair + p) * row] = make_float2(0, 0);
            continue;
        }
        float weight[FOURIER_WINDOW], df, ds;
        int fast[FOURIER_WINDOW];
        const int f = fourier_reach(g, (float)k, a.x, b.x, &df) + grid / 2,
                  s = fourier_reach(g, (float)k, a.y, b.y, &ds) + grid / 2;
#pragma unroll
        for (int i = 0; i < FOURIER_WINDOW; i++) {
            weight[i] = fourier_window<DEGREE>(g, df + (float)i);
            fast[i] = fourier_around(f + i, grid) * V;
        }
        /* Backwards: the phase of the adjoint is exp(2 pi i k axis / N). */
        const double turns = -(double)k * turn;
        const float2 phase = fourier_turn((float)(2 * (turns - rint(turns))));
        const float2 *cells = job.cells + OWN * side;
#pragma unroll 1
        for (int pair = OWN * side; pair < job.pairs; pair += V, cells += plane) {
            float sum[2 * OWN];
            fourier_taps<V, DEGREE>(g, cells, s, ds, fast, weight, sum);
#pragma unroll
            for (int p = 0; p < OWN; p++)
                to[(pair + p) * row] =
                    fourier_times(make_float2(sum[2 * p], sum[2 * p + 1]), phase);
        }
    }
}

template <int V>
static mb_status fourier_polar_as(const fourier_polar_job &job, cudaStream_t stream)
{
    const dim3 blocks((unsigned)((job.g.rays + FOURIER_POLAR_RAYS - 1) / FOURIER_POLAR_RAYS),
                      (unsigned)((job.n + FOURIER_POLAR_SAMPLES - 1) / FOURIER_POLAR_SAMPLES));
    if (job.g.degree == MB_FOURIER_FAST_DEGREE)
        fourier_polar<V, MB_FOURIER_FAST_DEGREE><<<blocks, 256, 0, stream>>>(job);
    else
        fourier_polar<V, MB_GRIDDING_DEGREE><<<blocks, 256, 0, stream>>>(job);
    MB_LAUNCHED("fourier_polar");
    return MB_STATUS_OK;
}

static mb_status fourier_polar_of(const fourier_polar_job &job, int side, cudaStream_t stream)
{
    switch (side) {
    case 8: return fourier_polar_as<8>(job, stream);
    case 4: return fourier_polar_as<4>(job, stream);
    case 2: return fourier_polar_as<2>(job, stream);
    default: return fourier_polar_as<1>(job, stream);
    }
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
