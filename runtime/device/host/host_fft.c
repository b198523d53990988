/*
** FFTs of the host: FFTW, single precision, guru64 interface. Plans are made with FFTW_ESTIMATE,
** which does not touch the arrays, so planning needs none. FFTW's planner is not thread-safe and is
** called under a lock; execution is thread-safe. An execution cannot be stopped; the cancel flag is
** polled between the transforms of a batch.
**
** What a transform gives must not depend on its place in a batch, nor on how many there are. FFTW
** takes another way for a batch, for a number of threads, and for arrays that are not aligned. So a
** plan is always of one transform. Small ones, and all of one axis, are planned for one thread and
** shared out among threads; where some of a batch are not aligned, these pass through buffers that
** are, one for each thread, in the work area. Large ones are planned for all threads and run one
** after the other; there a batch of which some are not aligned has a plan for any alignment. An
** array that is not aligned as a whole, a view of the middle of another, has that plan as well.
*/
#include "device/host/host_backend.h"
#include <fftw3.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_POINTS 32768 /* fewer are not worth waking other threads for */
#define BUFFER_ALIGNMENT 64

typedef struct host_fft {
    mb_fft_desc one; /* transform of the batch */
    fftwf_plan aligned, unaligned;
    bool alone;                     /* planned for one thread */
    bool mixed;                     /* some of a batch are aligned and some are not */
    int threads;                    /* that have buffers */
    uint64_t in_bytes, out_bytes;   /* of a transform: distances */
    uint64_t in_buffer, out_buffer; /* of a thread; the second is 0 in place */
} host_fft;

static pthread_mutex_t planner_lock = PTHREAD_MUTEX_INITIALIZER;

/* Addresses that stand for the arrays during planning; never dereferenced. */
#define ALIGNED_IN ((void *)(uintptr_t)0x100000000)
#define ALIGNED_OUT ((void *)(uintptr_t)0x900000000000)

static fftwf_plan make_plan(const mb_fft_desc *d, unsigned flags)
{
    fftwf_iodim64 dims[3], batch = {d->batch, d->in_distance, d->out_distance};
    int64_t in_stride = 1, out_stride = 1;
    for (int i = d->rank - 1; i >= 0; i--) {
        dims[i] = (fftwf_iodim64){d->dims[i], in_stride, out_stride};
        in_stride = i == d->rank - 1 ? d->in_pitch : in_stride * d->dims[i];
        out_stride = i == d->rank - 1 ? d->out_pitch : out_stride * d->dims[i];
    }
    void *in = ALIGNED_IN, *out = d->in_place ? ALIGNED_IN : ALIGNED_OUT;
    switch (d->kind) {
    case MB_FFT_R2C: return fftwf_plan_guru64_dft_r2c(d->rank, dims, 1, &batch, in, out, flags);
    case MB_FFT_C2R: return fftwf_plan_guru64_dft_c2r(d->rank, dims, 1, &batch, in, out, flags);
    default:
        return fftwf_plan_guru64_dft(d->rank, dims, 1, &batch, in, out,
                                     d->kind == MB_FFT_C2C_FORWARD ? FFTW_FORWARD : FFTW_BACKWARD,
                                     flags);
    }
}

static int64_t points_of(const mb_fft_desc *desc)
{
    int64_t points = 1;
    for (int i = 0; i < desc->rank; i++)
        points *= desc->dims[i];
    return points;
}

static fftwf_plan plan_locked(const host_fft *fft, unsigned flags)
{
    static bool threads_ready;
    pthread_mutex_lock(&planner_lock);
    if (!threads_ready) {
        fftwf_init_threads();
        threads_ready = true;
    }
    fftwf_plan_with_nthreads(fft->alone ? 1 : omp_get_max_threads());
    fftwf_plan plan = make_plan(&fft->one, flags);
    pthread_mutex_unlock(&planner_lock);
    return plan;
}

void mb_host_fft_destroy(void *self, void *plan)
{
    (void)self;
    host_fft *fft = plan;
    pthread_mutex_lock(&planner_lock);
    if (fft->aligned)
        fftwf_destroy_plan(fft->aligned);
    if (fft->unaligned)
        fftwf_destroy_plan(fft->unaligned);
    pthread_mutex_unlock(&planner_lock);
    free(fft);
}

/* Is an address, or a distance, a multiple of what FFTW's vector code wants? */
static bool is_aligned(uintptr_t address)
{
    return fftwf_alignment_of((float *)address) == 0;
}

static uint64_t buffer_of(uint64_t bytes)
{
    return (bytes + BUFFER_ALIGNMENT - 1) / BUFFER_ALIGNMENT * BUFFER_ALIGNMENT;
}

static void describe(host_fft *fft, const mb_fft_desc *desc)
{
    fft->one = *desc;
    fft->one.batch = 1;
    fft->alone = desc->rank == 1 || points_of(desc) < SMALL_POINTS;
    fft->in_bytes = (uint64_t)desc->in_distance * (desc->kind == MB_FFT_R2C ? 4 : 8);
    fft->out_bytes = (uint64_t)desc->out_distance * (desc->kind == MB_FFT_C2R ? 4 : 8);
    fft->mixed = !is_aligned(fft->in_bytes) || !is_aligned(fft->out_bytes);
    fft->threads = omp_get_max_threads();
    if (!fft->mixed || !fft->alone)
        return;
    fft->in_buffer = buffer_of(fft->in_bytes);
    fft->out_buffer = desc->in_place ? 0 : buffer_of(fft->out_bytes);
}

mb_status mb_host_fft_create(void *self, const mb_fft_desc *desc, void **plan, uint64_t *work_bytes,
                             uint64_t *library_bytes)
{
    host_fft *fft = calloc(1, sizeof *fft);
    if (!fft)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for an FFT plan");
    describe(fft, desc);
    fft->aligned = plan_locked(fft, FFTW_ESTIMATE);
    if (!fft->aligned) {
        mb_host_fft_destroy(self, fft);
        return mb_fail(MB_STATUS_UNSUPPORTED, NULL,
                       "FFTW has no plan for a %d-D transform of %lld elements per row", desc->rank,
                       (long long)desc->dims[desc->rank - 1]);
    }
    *plan = fft;
    *work_bytes = mb_bytes_mul(fft->in_buffer + fft->out_buffer, (uint64_t)fft->threads);
    *library_bytes = 0;
    return MB_STATUS_OK;
}

/* The plan for arrays of any alignment; made once, by whichever thread needs it first. NULL: FFTW
** has none. */
static fftwf_plan unaligned_plan(host_fft *fft)
{
    fftwf_plan plan = __atomic_load_n(&fft->unaligned, __ATOMIC_ACQUIRE);
    if (plan)
        return plan;
    fftwf_plan made = plan_locked(fft, FFTW_ESTIMATE | FFTW_UNALIGNED);
    pthread_mutex_lock(&planner_lock);
    if (!fft->unaligned)
        __atomic_store_n(&fft->unaligned, made, __ATOMIC_RELEASE);
    else if (made)
        fftwf_destroy_plan(made);
    plan = fft->unaligned;
    pthread_mutex_unlock(&planner_lock);
    return plan;
}

static void execute(const host_fft *fft, fftwf_plan plan, void *in, void *out)
{
    switch (fft->one.kind) {
    case MB_FFT_R2C: fftwf_execute_dft_r2c(plan, in, out); break;
    case MB_FFT_C2R: fftwf_execute_dft_c2r(plan, in, out); break;
    default: fftwf_execute_dft(plan, in, out); break;
    }
}

/* A transform of a mixed batch: by the plan for aligned arrays in any case. */
static void execute_mixed(const host_fft *fft, char *in, char *out, char *buffer)
{
    char *from = is_aligned((uintptr_t)in) ? in : buffer;
    char *to = fft->one.in_place            ? from
               : is_aligned((uintptr_t)out) ? out
                                            : buffer + fft->in_buffer;
    if (from != in)
        memcpy(from, in, fft->in_bytes);
    execute(fft, fft->aligned, from, to);
    if (to != out)
        memcpy(out, to, fft->out_bytes);
}

/* Transform i of a batch. `buffer`: of the thread that makes it; NULL where no array needs one. */
static void execute_one(const host_fft *fft, fftwf_plan plan, char *in, char *out, char *buffer,
                        int64_t i)
{
    char *from = in + (uint64_t)i * fft->in_bytes, *to = out + (uint64_t)i * fft->out_bytes;
    if (mb_cancelled())
        return;
    if (buffer)
        execute_mixed(fft, from, to, buffer);
    else
        execute(fft, plan, from, to);
}

/* The buffer of a thread, or NULL. */
static char *thread_buffer(const host_fft *fft, void *work, int thread)
{
    const uint64_t bytes = fft->in_buffer + fft->out_buffer;
    return fft->in_buffer > 0 ? (char *)work + (uint64_t)thread * bytes : NULL;
}

mb_status mb_host_fft_exec(void *self, void *plan, const mb_fft_desc *desc, void *in, void *out,
                           void *work)
{
    (void)self;
    host_fft *fft = plan;
    fftwf_plan chosen = fft->aligned;
    if (fft->in_buffer == 0 &&
        (fft->mixed || !is_aligned((uintptr_t)in) || !is_aligned((uintptr_t)out)))
        chosen = unaligned_plan(fft);
    if (!chosen)
        return mb_fail(MB_STATUS_UNSUPPORTED, NULL,
                       "FFTW has no plan for unaligned arrays of this shape");
    MB_TRY(mb_cancel_check());
    /* Operators that run transforms in their own threads have a buffer for each, too. */
    const bool inside = omp_in_parallel();
    const int own = inside ? omp_get_thread_num() : 0;
    const bool few = desc->batch * points_of(desc) < SMALL_POINTS;
    const int threads = inside || few || !fft->alone ? 1 : fft->threads;
    /* Not a parallel region of one thread: FFTW's own threads would be made anew in each loop. */
    if (threads == 1) {
        for (int64_t i = 0; i < desc->batch; i++)
            execute_one(fft, chosen, in, out, thread_buffer(fft, work, own), i);
        return mb_cancel_check();
    }
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < desc->batch; i++)
        execute_one(fft, chosen, in, out, thread_buffer(fft, work, omp_get_thread_num()), i);
    return mb_cancel_check();
}

const char *mb_host_fft_version(void)
{
    return fftwf_version;
}
