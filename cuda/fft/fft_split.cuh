/*
** apply_otf in three launches, each of which reads and writes the grid once: planes of 64 R x 512
** samples, 1024 / R of them (mb_apply_otf_split). The transform along y is split: its 64 R points
** y = r + R k have frequencies q + 64 s, with k, q < 64 and r, s < R.
**
** Forth: a block takes the 64 rows of one r in a plane: along k, along x, and the turns
** exp(-2 pi i r q / 64 R). Filter: a block takes all r and all planes of a tile: along r and z, the
** product, and back. Back is the inverse of forth. Between the launches a plane consists of tiles
** of R x 8 complex numbers: [q][tile of x][r][8], then the highest frequency, [q / 8][r][8].
**
** In place, the blocks of a plane write where the others read. So each counts itself in when it has
** read, and waits for all R of the plane before it writes. They take tickets in order. There is no
** deadlock if R blocks fit on the device together.
*/
#ifndef MB_CUDA_FFT_SPLIT_CUH
#define MB_CUDA_FFT_SPLIT_CUH

#include "shared/early_launch.cuh"
#include "shared/fft_planes.cuh"
#include "shared/otf_planes.cuh"
#include "shared/prefetch.cuh"

struct split_job {
    float2 *data;
    const float2 *otf; /* rows of points + 1 */
    int planes;        /* of otf, if it is in planes */
    float scale, turn; /* of the real and the imaginary part of otf */
    unsigned *ticket;  /* of the launch; zero before it, like the next member */
    unsigned *read;    /* per plane: blocks that have read their part */
};

/* Rows are packed to POINTS complex numbers. GAP is the room of 16 x 16 points with a gap after each
** 16. Shared memory: the exchange, `table` (256th roots of n p, [n][17]), `roots`, `turns`. */
template <int R_>
struct split_sizes {
    static constexpr int R = R_, ROWS = MB_APPLY_OTF_SPLIT_ROWS, POINTS = MB_APPLY_OTF_SPLIT_POINTS;
    static constexpr int NY = ROWS * R, NZ = MB_APPLY_OTF_SPLIT_DEPTH / R, PITCH = POINTS + 1;
    static constexpr int STRIDE = NY * PITCH, WIDTH = 8, TILE = WIDTH * R, THREADS = 512;
    static constexpr int GAP = 16 * 17, table = ROWS * GAP, roots = table + GAP;
    static constexpr int turns = roots + POINTS, shared = turns + NY;
    static_assert(shared == MB_APPLY_OTF_SPLIT_SHARED(NY), "estimates say otherwise");

    /* The place of frequency k of row (q, r) in a plane. */
    __device__ static __forceinline__ int at(int q, int r, int k)
    {
        const int tile =
            k == POINTS ? ROWS * (POINTS / WIDTH) + q / WIDTH : q * (POINTS / WIDTH) + k / WIDTH;
        return tile * TILE + r * WIDTH + (k == POINTS ? q : k) % WIDTH;
    }
    __device__ static __forceinline__ void fill(float2 *memory)
    {
        for (int i = threadIdx.x; i < GAP; i += THREADS)
            memory[table + i] = mb_fft_root(i / 17 * (i % 17), POINTS);
        for (int i = threadIdx.x; i < POINTS; i += THREADS)
            memory[roots + i] = mb_fft_root(i, 2 * POINTS);
        for (int i = threadIdx.x; i < NY; i += THREADS)
            memory[turns + i] = mb_fft_root(i, NY);
    }
};

__device__ static __forceinline__ float2 split_add(float2 a, float2 b)
{
    return make_float2(a.x + b.x, a.y + b.y);
}
__device__ static __forceinline__ float2 split_sub(float2 a, float2 b)
{
    return make_float2(a.x - b.x, a.y - b.y);
}

/* What a thread has of the spectrum: frequencies p + 16 j of row q1, and of row q2, which is the
** row of -q1, their partners: frequency POINTS less theirs. Rows 0 and 32 are their own partners.
** There `middle` threads have p = 0 and p = 8 of one row; each of the two is its own partner. */
template <class S>
struct split_pair {
    int q1, q2, p1, p2;
    bool middle;

    __device__ __forceinline__ split_pair()
    {
        const int i = threadIdx.x / 16, own = threadIdx.x % 16;
        p1 = i > 0 ? own : own % 8;
        q1 = i > 0 ? i : own < 8 ? 0 : S::ROWS / 2;
        q2 = i > 0 ? S::ROWS - i : q1;
        middle = i == 0 && p1 == 0;
        p2 = middle ? 8 : 16 - p1;
    }
    /* From places of the two rows to pairs: b[j] becomes the partner of a[j]. A middle thread has
    ** p1 = 0, then p2 = 8, and one number more. */
    __device__ __forceinline__ void join(float2 (&a)[16], float2 (&b)[16], float2 *more) const
    {
        float2 c[16], d[16];
        if (middle) {
            *more = a[8];
#pragma unroll
            for (int j = 0; j < 16; j++) {
                c[j] = j < 8 ? a[j] : b[j - 8];
                d[j] = j == 0 ? a[0] : j < 8 ? a[16 - j] : b[23 - j];
            }
#pragma unroll
            for (int j = 0; j < 16; j++) {
                a[j] = c[j];
                b[j] = d[j];
            }
        } else
            turn_round(b);
    }
    __device__ __forceinline__ void part(float2 (&a)[16], float2 (&b)[16], float2 more) const
    {
        float2 c[16], d[16];
        if (middle) {
#pragma unroll
            for (int j = 0; j < 16; j++) {
                c[j] = j < 8 ? a[j] : j == 8 ? more : b[16 - j];
                d[j] = j < 8 ? a[j + 8] : b[23 - j];
            }
#pragma unroll
            for (int j = 0; j < 16; j++) {
                a[j] = c[j];
                b[j] = d[j];
            }
        } else
            turn_round(b);
    }
    __device__ static __forceinline__ void turn_round(float2 (&b)[16])
    {
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const float2 c = b[j];
            b[j] = b[15 - j];
            b[15 - j] = c;
        }
    }
    /* The root of pair j, whose frequency in row q1 is p1 + 16 j, or 8 + 16 (j - 8) if middle. */
    __device__ __forceinline__ float2 root(const float2 *roots, int j) const
    {
        return roots[p1 + 16 * j - (middle && j >= 8 ? 120 : 0)];
    }
    /* Calls work(j, place of a[j], place of b[j]) for all pairs. */
    template <class Work>
    __device__ __forceinline__ void each(float2 *plane, int r, const Work &work) const
    {
        const int end = 16 - p1;
        float2 *first = plane + S::at(q1, r, p1),
               *second = plane + S::at(q2, r, 0) + (end / S::WIDTH + 15 * 16 / S::WIDTH) * S::TILE +
                         end % S::WIDTH;
#pragma unroll
        for (int j = 0; j < 16; j++) {
            if (j == 8 && middle) {
                first -= 120 / S::WIDTH * S::TILE;
                second += 120 / S::WIDTH * S::TILE;
            }
            work(j, first + 16 / S::WIDTH * S::TILE * j,
                 j == 0 && p1 == 0 ? plane + S::at(q2, r, S::POINTS)
                                   : second - 16 / S::WIDTH * S::TILE * j);
        }
    }
};

/* The order of a launch's blocks. A block takes the ticket of its next part when it may write this
** one: then all parts of the plane are taken, and it never waits for itself. */
struct split_order {
    unsigned *ticket, *queue; /* in shared memory */
    unsigned next;

    __device__ __forceinline__ void take()
    {
        if (threadIdx.x == 0)
            next = atomicAdd(ticket, 1u);
    }
    /* What the first thread took, after a barrier; another must follow before the next time. */
    __device__ __forceinline__ unsigned told() const
    {
        if (threadIdx.x == 0)
            *queue = next;
        __syncthreads();
        return *queue;
    }
    /* Between a block's reads of a plane, which have ended, and its writes. */
    __device__ static __forceinline__ void has_read(unsigned *read)
    {
        if (threadIdx.x == 0)
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(read) : "memory");
    }
    template <class S>
    __device__ __forceinline__ void wait(const unsigned *read)
    {
        if (threadIdx.x == 0)
            while (mb_fft_acquire(read) < S::R)
                __nanosleep(20);
        __syncthreads();
        take();
    }
};

__device__ static __forceinline__ void split_dfts(float2 (&a)[16], float2 (&b)[16])
{
    mb_fft_dft<16>::run(a);
    mb_fft_dft<16>::run(b);
}

/* Along k: rows h + 2 m in a thread, m < 32. The other two points of 64 meet in the next function. */
template <class S>
__device__ static __forceinline__ void split_load_rows(const float2 *plane, int r, float2 *memory)
{
    const int x = threadIdx.x % S::POINTS, h = threadIdx.x / S::POINTS;
    const float2 *from = plane + (r + S::R * h) * S::PITCH + x;
    float2 v[32];
#pragma unroll
    for (int i = 0; i < 32; i++)
        v[i] = __ldca(from + i * (2 * S::R * S::PITCH));
    mb_fft_dft<32>::run(v);
    if (h > 0)
#pragma unroll
        for (int i = 1; i < 32; i++)
            v[i] = mb_fft_mul(v[i], memory[S::turns + i * S::R]);
#pragma unroll
    for (int i = 0; i < 32; i++)
        memory[(2 * i + h) * S::POINTS + x] = v[i];
}

/* The two points along k, and the first 16 of 256 along x: of rows q and q + 32. */
template <class S>
__device__ static __forceinline__ void split_inner_forth(float2 *memory)
{
    const int x = threadIdx.x % 16, q = threadIdx.x / 16;
    const float2 *from = memory + 2 * q * S::POINTS + x;
    float2 a[16], b[16], *to = memory + q * S::GAP + x * 17;
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const float2 u = from[16 * i], w = from[S::POINTS + 16 * i];
        a[i] = split_add(u, w);
        b[i] = split_sub(u, w);
    }
    split_dfts(a, b);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; i++) {
        to[i] = a[i];
        to[S::ROWS / 2 * S::GAP + i] = b[i];
    }
    __syncthreads();
}

/* The other 16 points along x, the half spectrum of both rows, and the turns. */
template <class S>
__device__ static __forceinline__ void split_store_pairs(float2 *plane, int r, float2 *memory,
                                                         const unsigned *read, split_order *order)
{
    const split_pair<S> at;
    const float2 *from1 = memory + at.q1 * S::GAP + at.p1,
                 *from2 = memory + at.q2 * S::GAP + at.p2 % 16, *table1 = memory + S::table + at.p1,
                 *table2 = memory + S::table + at.p2;
    float2 a[16], b[16], more;
#pragma unroll
    for (int i = 0; i < 16; i++) {
        a[i] = i > 0 ? mb_fft_mul(from1[17 * i], table1[17 * i]) : from1[0];
        b[i] = i > 0 ? mb_fft_mul(from2[17 * i], table2[17 * i]) : from2[0];
    }
    split_dfts(a, b);
    at.join(a, b, &more);
#pragma unroll
    for (int j = 0; j < 16; j++) {
        const float2 s = make_float2(0.5f * (a[j].x + b[j].x), 0.5f * (a[j].y - b[j].y)),
                     d = mb_fft_mul(make_float2(0.5f * (a[j].x - b[j].x), 0.5f * (a[j].y + b[j].y)),
                                    at.root(memory + S::roots, j));
        /* X[k] = s - i d, and conj(s + i d) of the partner */
        a[j] = make_float2(s.x + d.y, s.y - d.x);
        b[j] = make_float2(s.x - d.y, -s.y - d.x);
    }
    const float2 turn1 = memory[S::turns + at.q1 * r], turn2 = memory[S::turns + at.q2 * r];
    order->wait<S>(read);
    if (at.p1 == 0) { /* the lowest and the highest frequency are those of real numbers */
        plane[S::at(at.q2, r, 0)] = mb_fft_mul(mb_fft_conj(a[0]), turn2);
        plane[S::at(at.q1, r, S::POINTS)] = mb_fft_mul(mb_fft_conj(b[0]), turn1);
    }
    if (at.middle)
        plane[S::at(at.q1, r, S::POINTS / 2)] = mb_fft_mul(mb_fft_conj(more), turn1);
    at.each(plane, r, [&](int j, float2 *first, float2 *second) {
        __stcg(first, mb_fft_mul(a[j], turn1));
        __stcg(second, mb_fft_mul(b[j], turn2));
    });
}

template <int R>
__global__ void __launch_bounds__(512, 1) split_forth_kernel(const split_job job)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    typedef split_sizes<R> S;
    extern __shared__ float2 memory[];
    __shared__ unsigned queue;
    split_order order = {job.ticket, &queue, 0};
    mb_let_next();
    S::fill(memory);
    order.take();
    for (unsigned item = order.told(); item < S::NZ * R; item = order.told()) {
        const unsigned guess = item + gridDim.x; /* perhaps the block's next part */
        float2 *plane = job.data + (int64_t)(item / R) * S::STRIDE;
        unsigned *read = job.read + item / R;
        split_load_rows<S>(plane, item % R, memory);
        __syncthreads();
        order.has_read(read);
        if (guess < S::NZ * R && threadIdx.x < S::ROWS)
            mb_prefetch_floats((const float *)(job.data + (int64_t)(guess / R) * S::STRIDE +
                                               (guess % R + R * threadIdx.x) * S::PITCH),
                               2 * S::POINTS);
        split_inner_forth<S>(memory);
        split_store_pairs<S>(plane, item % R, memory, read, &order);
    }
#endif
}

/* The inverse of split_store_pairs: the numbers are swapped from the pairs on. */
template <class S>
__device__ static __forceinline__ void split_load_pairs(float2 *plane, int r, float2 *memory)
{
    const split_pair<S> at;
    const float2 turn1 = mb_fft_conj(memory[S::turns + at.q1 * r]),
                 turn2 = mb_fft_conj(memory[S::turns + at.q2 * r]);
    float2 a[16], b[16], more = make_float2(0, 0);
    if (at.middle)
        more = __ldcg(plane + S::at(at.q1, r, S::POINTS / 2));
    at.each(plane, r, [&](int j, const float2 *first, const float2 *second) {
        a[j] = __ldcg(first);
        b[j] = __ldcg(second);
    });
    more = mb_fft_mul(more, turn1);
    more = make_float2(-2 * more.y, 2 * more.x);
#pragma unroll
    for (int j = 0; j < 16; j++) {
        const float2 f = mb_fft_mul(a[j], turn1), g = mb_fft_mul(b[j], turn2);
        const float2 s = make_float2(f.x + g.x, f.y - g.y),
                     d = mb_fft_mul(make_float2(f.x - g.x, f.y + g.y),
                                    mb_fft_conj(at.root(memory + S::roots, j)));
        /* Z[k] = s + i d, and conj(s - i d) of the partner */
        a[j] = make_float2(s.y + d.x, s.x - d.y);
        b[j] = make_float2(d.x - s.y, s.x + d.y);
    }
    at.part(a, b, more);
    split_dfts(a, b);
    float2 *to1 = memory + at.q1 * S::GAP + at.p1, *to2 = memory + at.q2 * S::GAP + at.p2 % 16;
    const float2 *table1 = memory + S::table + at.p1, *table2 = memory + S::table + at.p2;
#pragma unroll
    for (int i = 0; i < 16; i++) {
        to1[17 * i] = i > 0 ? mb_fft_mul(a[i], table1[17 * i]) : a[0];
        to2[17 * i] = i > 0 ? mb_fft_mul(b[i], table2[17 * i]) : b[0];
    }
}

template <class S>
__device__ static __forceinline__ void split_inner_back(float2 *memory)
{
    const int x = threadIdx.x % 16, q = threadIdx.x / 16;
    const float2 *from = memory + q * S::GAP + x * 17, turn = memory[S::turns + q * S::R];
    float2 a[16], b[16], *to = memory + 2 * q * S::POINTS + x;
#pragma unroll
    for (int i = 0; i < 16; i++) {
        a[i] = from[i];
        b[i] = from[S::ROWS / 2 * S::GAP + i];
    }
    split_dfts(a, b);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; i++) {
        to[16 * i] = split_add(a[i], b[i]);
        to[S::POINTS + 16 * i] = mb_fft_mul(split_sub(a[i], b[i]), turn);
    }
    __syncthreads();
}

template <class S>
__device__ static __forceinline__ void split_store_rows(float2 *plane, int r, const float2 *memory,
                                                        const unsigned *read, split_order *order)
{
    const int x = threadIdx.x % S::POINTS, h = threadIdx.x / S::POINTS;
    float2 v[32], *to = plane + (r + S::R * h) * S::PITCH + x;
#pragma unroll
    for (int i = 0; i < 32; i++)
        v[i] = memory[(2 * i + h) * S::POINTS + x];
    mb_fft_dft<32>::run(v);
    order->wait<S>(read);
#pragma unroll
    for (int i = 0; i < 32; i++)
        __stcs(to + i * (2 * S::R * S::PITCH), mb_fft_swap(v[i]));
    if (threadIdx.x < S::ROWS)
        plane[(r + S::R * threadIdx.x) * S::PITCH + S::POINTS] = make_float2(0, 0);
}

template <int R>
__global__ void __launch_bounds__(512, 1) split_back_kernel(const split_job job)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    typedef split_sizes<R> S;
    extern __shared__ float2 memory[];
    __shared__ unsigned queue;
    split_order order = {job.ticket, &queue, 0};
    S::fill(memory);
    mb_wait_before();
    order.take();
    for (unsigned item = order.told(); item < S::NZ * R; item = order.told()) {
        const unsigned guess = item + gridDim.x; /* perhaps the block's next part */
        float2 *plane = job.data + (int64_t)(item / R) * S::STRIDE;
        unsigned *read = job.read + item / R;
        split_load_pairs<S>(plane, item % R, memory);
        __syncthreads();
        order.has_read(read);
        if (guess < S::NZ * R && threadIdx.x < S::ROWS) /* of each block a part of the plane */
            mb_prefetch(job.data + (int64_t)(guess / R) * S::STRIDE +
                            (guess % R * S::ROWS + threadIdx.x) * S::POINTS,
                        8 * S::POINTS);
        split_inner_back<S>(memory);
        split_store_rows<S>(plane, item % R, memory, read, &order);
    }
#endif
}

/* The planes of a tile in shared memory: planes p and -p, p = 1 ..., as [p][r][column]; the plane
** between them; and the turns exp(-2 pi i p k / NZ), [p][k]. With two frequencies of a thread both
** planes have the same sum to add to, and their own sums and differences are stored. */
template <class S>
struct split_planes {
    static constexpr int DEEP = 32 / S::R;
    float4 *pairs;
    float2 *middle, *turns;

    /* Complex numbers. */
    __host__ __device__ static constexpr size_t room(int planes)
    {
        return planes > 0 ? (size_t)planes * S::TILE + (size_t)(planes / 2) * 32 : 0;
    }
    __device__ __forceinline__ split_planes(float2 *memory, int reach)
    {
        pairs = (float4 *)memory;
        middle = memory + 2 * reach * S::TILE;
        turns = middle + S::TILE;
    }
    __device__ __forceinline__ void fill(int reach)
    {
        for (int i = threadIdx.x; i < 32 * reach; i += blockDim.x)
            turns[i] = mb_fft_root((i / 32 + 1) * (i % 32), S::NZ);
    }
    __device__ __forceinline__ void load(const split_job &job, unsigned item, unsigned body)
    {
        const int reach = job.planes / 2;
        const int64_t stride = (int64_t)S::NY * S::PITCH;
        for (int i = threadIdx.x; i < (reach + 1) * S::TILE; i += blockDim.x) {
            const int column = i % S::WIDTH, r = i / S::WIDTH % S::R, p = i / S::TILE;
            const unsigned q = item < body ? item / (S::POINTS / S::WIDTH)
                                           : (item - body) * S::WIDTH + column,
                           x = item < body ? item % (S::POINTS / S::WIDTH) * S::WIDTH + column
                                           : S::POINTS;
            const float2 *at = job.otf + (int64_t)(q + r * S::ROWS) * S::PITCH + x;
            const float2 a = __ldcg(at + (reach + p) * stride);
            if (p == 0) {
                middle[i] = a;
                continue;
            }
            const float2 b = __ldcg(at + (reach - p) * stride);
            pairs[i - S::TILE] = DEEP == 2 ? make_float4(a.x + b.x, a.y + b.y, a.x - b.x, a.y - b.y)
                                           : make_float4(a.x, a.y, b.x, b.y);
        }
    }
    /* Adds planes p and -p with turn c to the sums of a column. */
    __device__ static __forceinline__ void add(float2 (&w)[DEEP], int p, float4 f, float2 c)
    {
        if constexpr (DEEP == 2) {
            float2 &sum = w[p % 2];
            sum.x = fmaf(f.x, c.x, fmaf(-f.w, c.y, sum.x));
            sum.y = fmaf(f.y, c.x, fmaf(f.z, c.y, sum.y));
        } else
            mb_otf_add<DEEP>(w, p, make_float2(f.x, f.y), make_float2(f.z, f.w), c);
    }
};

/* Along r and z in a tile, times otf, and back. A thread has 32 planes z + DEEP j of one number of
** the tile, then one of 32 frequencies along z + 32 i, i < DEEP, of all r of a column. */
template <class S>
struct split_depth {
    static constexpr int R = S::R, DEEP = 32 / R, ROOM = 256 + 8; /* of 32 in shared memory */
    static constexpr int AHEAD = 12 / DEEP;                       /* r whose factors are loaded */
    float2 v[32], turn[DEEP], factor[AHEAD * DEEP];
    int column, k;

    __device__ __forceinline__ split_depth()
    {
        column = threadIdx.x % S::WIDTH;
        k = threadIdx.x / S::WIDTH;
#pragma unroll
        for (int i = 0; i < DEEP; i++)
            turn[i] = mb_fft_root(i * k, S::NZ);
    }
    __device__ __forceinline__ void load(const float2 *base, float2 *memory)
    {
#pragma unroll
        for (int j = 0; j < 32; j++)
            v[j] = __ldcg(base + j * ((int64_t)DEEP * S::STRIDE));
        mb_fft_dft<32>::run(v);
#pragma unroll
        for (int j = 0; j < 32; j++)
            memory[j * ROOM + threadIdx.x] = v[j];
    }
    __device__ __forceinline__ void store(float2 *base, const float2 *memory)
    {
#pragma unroll
        for (int j = 0; j < 32; j++)
            v[j] = memory[j * ROOM + threadIdx.x];
        mb_fft_dft<32>::run(v);
#pragma unroll
        for (int j = 0; j < 32; j++)
            __stcg(base + j * ((int64_t)DEEP * S::STRIDE), mb_fft_swap(v[j]));
    }
    /* Along r: from shared memory, or back to it. */
    __device__ __forceinline__ void forth(const float2 *memory)
    {
        const float2 *from = memory + k * ROOM + column;
#pragma unroll
        for (int i = 0; i < DEEP; i++) {
            float2 x[R];
#pragma unroll
            for (int r = 0; r < R; r++)
                x[r] = from[i * S::TILE + r * S::WIDTH];
            mb_fft_dft<R>::run(x);
#pragma unroll
            for (int r = 0; r < R; r++)
                v[i * R + r] = i > 0 ? mb_fft_mul(x[r], turn[i]) : x[r];
        }
    }
    __device__ __forceinline__ void back(float2 *memory)
    {
        float2 *to = memory + k * ROOM + column;
#pragma unroll
        for (int i = 0; i < DEEP; i++) {
            float2 x[R];
#pragma unroll
            for (int r = 0; r < R; r++)
                x[r] = v[i * R + r];
            mb_fft_dft<R>::run(x);
#pragma unroll
            for (int r = 0; r < R; r++)
                to[i * S::TILE + r * S::WIDTH] = x[r];
        }
    }
    __device__ __forceinline__ void expect(const float2 *otf, int r)
    {
#pragma unroll
        for (int i = 0; i < DEEP; i++)
            factor[r % AHEAD * DEEP + i] =
                __ldcg(otf + ((int64_t)32 * i * S::NY + r * S::ROWS) * S::PITCH);
    }
    /* The rest along z, the product, and the begin of the way back, with swapped numbers, for one
    ** r, whose factors are w. */
    __device__ __forceinline__ void product(int r, const float2 (&w)[DEEP], const split_job &job)
    {
        float2 x[DEEP];
#pragma unroll
        for (int i = 0; i < DEEP; i++)
            x[i] = v[i * R + r];
        mb_fft_dft<DEEP>::run(x);
#pragma unroll
        for (int i = 0; i < DEEP; i++)
            x[i] =
                mb_fft_swap(mb_fft_mul(x[i], make_float2(w[i].x * job.scale, w[i].y * job.turn)));
        mb_fft_dft<DEEP>::run(x);
#pragma unroll
        for (int i = 0; i < DEEP; i++)
            v[i * R + r] = i > 0 ? mb_fft_mul(x[i], turn[i]) : x[i];
    }
    __device__ __forceinline__ void multiply(const float2 *otf, const split_job &job)
    {
#pragma unroll
        for (int r = 0; r < R; r++) {
            float2 w[DEEP];
#pragma unroll
            for (int i = 0; i < DEEP; i++)
                w[i] = factor[r % AHEAD * DEEP + i];
            if (r + AHEAD < R)
                expect(otf, r + AHEAD);
            product(r, w, job);
        }
    }
    /* The same with factors made of planes, for CHUNK numbers r at a time, which have the same
    ** turns. */
    static constexpr int CHUNK = 8 / DEEP;
    __device__ __forceinline__ void multiply_planes(const split_planes<S> &planes,
                                                    const split_job &job)
    {
        const float4 *pairs = planes.pairs + column;
        const float2 *middle = planes.middle + column, *turns = planes.turns + k;
#pragma unroll
        for (int first = 0; first < R; first += CHUNK) {
            float2 w[CHUNK][DEEP];
#pragma unroll
            for (int j = 0; j < CHUNK; j++) {
                w[j][0] = middle[(first + j) * S::WIDTH];
#pragma unroll
                for (int i = 1; i < DEEP; i++)
                    w[j][i] = make_float2(0, 0);
            }
#pragma unroll 1
            for (int p = 0; p < job.planes / 2; p += DEEP)
#pragma unroll
                for (int i = 1; i <= DEEP; i++) {
                    if (p + i > job.planes / 2)
                        break;
                    const float2 c = turns[(p + i - 1) * 32];
#pragma unroll
                    for (int j = 0; j < CHUNK; j++) {
                        const float4 f = pairs[(p + i - 1) * S::TILE + (first + j) * S::WIDTH];
                        split_planes<S>::add(w[j], i, f, c);
                    }
                }
#pragma unroll
            for (int j = 0; j < CHUNK; j++) {
                mb_fft_dft<DEEP>::run(w[j]);
                product(first + j, w[j], job);
            }
        }
    }
};

template <int R, bool PLANES>
__global__ void __launch_bounds__(256, 2) split_filter_kernel(const split_job job)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    typedef split_sizes<R> S;
    constexpr unsigned body = S::ROWS * (S::POINTS / S::WIDTH), tiles = body + S::ROWS / S::WIDTH;
    extern __shared__ float2 memory[];
    __shared__ unsigned queue;
    split_depth<S> depth;
    split_order order = {job.ticket, &queue, 0};
    split_planes<S> planes(memory + 32 * depth.ROOM, job.planes / 2);
    if (PLANES)
        planes.fill(job.planes / 2);
    mb_let_next();
    mb_wait_before();
    order.take();
    for (unsigned item = order.told(), next; item < tiles; item = next) {
        float2 *base = job.data + (int64_t)(threadIdx.x / S::TILE) * S::STRIDE +
                       (int64_t)item * S::TILE + threadIdx.x % S::TILE;
        const unsigned x = item % (S::POINTS / S::WIDTH) * S::WIDTH + depth.column,
                       q = item < body ? item / (S::POINTS / S::WIDTH)
                                       : (item - body) * S::WIDTH + depth.column;
        const float2 *otf =
            job.otf + ((int64_t)depth.k * S::NY + q) * S::PITCH + (item < body ? x : S::POINTS);
        __syncthreads();
        order.take();
        depth.load(base, memory);
        if constexpr (PLANES)
            planes.load(job, item, body);
        else
#pragma unroll
            for (int r = 0; r < depth.AHEAD; r++) /* while the numbers are in shared memory */
                depth.expect(otf, r);
        next = order.told();
        depth.forth(memory);
        if constexpr (PLANES)
            depth.multiply_planes(planes, job);
        else
            depth.multiply(otf, job);
        depth.back(memory);
        __syncthreads();
        depth.store(base, memory);
    }
#endif
}

template <int R>
static mb_status split_launch(const mb_op_call *call, split_job job)
{
    typedef split_sizes<R> S;
    const bool in_planes = job.planes > 0;
    void (*const kernels[])(const split_job) = {split_forth_kernel<R>,
                                                in_planes ? split_filter_kernel<R, true>
                                                          : split_filter_kernel<R, false>,
                                                split_back_kernel<R>};
    unsigned *counters = (unsigned *)call->slots[MB_APPLY_OTF_COUNTERS];
    MB_CUDA(cudaMemsetAsync(counters, 0, call->slot_bytes[MB_APPLY_OTF_COUNTERS], mb_stream(call)));
    for (int i = 0; i < MB_APPLY_OTF_SPLIT_LAUNCHES; i++) {
        const int threads = i == 1 ? 256 : S::THREADS;
        const size_t shared =
            sizeof(float2) *
            (i == 1 ? 32 * split_depth<S>::ROOM + split_planes<S>::room(job.planes) : S::shared);
        unsigned blocks = 0;
        MB_TRY(mb_fft_resident_blocks(call, (const void *)kernels[i], threads, shared, &blocks));
        job.ticket = counters + i;
        job.read = counters + MB_APPLY_OTF_SPLIT_LAUNCHES + (i == 2 ? S::NZ : 0);
        MB_TRY(mb_launch_early(i > 0, kernels[i], job, dim3(blocks), threads, shared,
                               mb_stream(call)));
    }
    return MB_STATUS_OK;
}

#endif
