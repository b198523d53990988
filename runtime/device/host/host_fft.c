/*
** FFTs of the host: FFTW, single precision, guru64 interface. Plans are made with FFTW_ESTIMATE,
** which does not touch the arrays, so planning needs none. FFTW's vector code requires the
** alignment that a plan was made with: one plan is for aligned arrays; a second, made when first
** needed, is for all others. A single 1-D transform is planned for one thread, because operators
** run many of them from their own threads; every other transform is planned for all threads. FFTW's
** planner is not thread-safe and is called under a lock; execution is thread-safe. An execution
** cannot be stopped, so a large batch is executed in pieces, and the cancel flag is polled between
** them.
*/
#include "device/host/host_backend.h"
#include <fftw3.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>

#define PIECE_POINTS (INT64_C(1) << 23) /* of a piece, unless one transform is larger */

/* A batch in pieces of parts[0].batch transforms. parts[1] is the remainder; its batch may be 0. */
typedef struct host_part {
    mb_fft_desc desc;
    fftwf_plan aligned, unaligned;
} host_part;

typedef struct host_fft {
    host_part parts[2];
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

static fftwf_plan plan_locked(const mb_fft_desc *desc, unsigned flags)
{
    static bool threads_ready;
    pthread_mutex_lock(&planner_lock);
    if (!threads_ready) {
        fftwf_init_threads();
        threads_ready = true;
    }
    int64_t points = desc->batch;
    for (int i = 0; i < desc->rank; i++)
        points *= desc->dims[i];
    bool small = points < 32768; /* too little work for several threads */
    fftwf_plan_with_nthreads(
        small || (desc->rank == 1 && desc->batch == 1) ? 1 : omp_get_max_threads());
    fftwf_plan plan = make_plan(desc, flags);
    pthread_mutex_unlock(&planner_lock);
    return plan;
}

/* The number of transforms in a piece. */
static int64_t piece_of(const mb_fft_desc *desc)
{
    int64_t points = 1;
    for (int i = 0; i < desc->rank; i++)
        points *= desc->dims[i];
    int64_t piece = points > 0 && points < PIECE_POINTS ? PIECE_POINTS / points : 1;
    return piece < desc->batch ? piece : desc->batch;
}

void mb_host_fft_destroy(void *self, void *plan)
{
    (void)self;
    host_fft *fft = plan;
    pthread_mutex_lock(&planner_lock);
    for (int i = 0; i < 2; i++) {
        if (fft->parts[i].aligned)
            fftwf_destroy_plan(fft->parts[i].aligned);
        if (fft->parts[i].unaligned)
            fftwf_destroy_plan(fft->parts[i].unaligned);
    }
    pthread_mutex_unlock(&planner_lock);
    free(fft);
}

mb_status mb_host_fft_create(void *self, const mb_fft_desc *desc, void **plan, uint64_t *work_bytes,
                             uint64_t *library_bytes)
{
    host_fft *fft = calloc(1, sizeof *fft);
    if (!fft)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for an FFT plan");
    const int64_t piece = piece_of(desc), batches[2] = {piece, piece > 0 ? desc->batch % piece : 0};
    for (int i = 0; i < 2; i++) {
        host_part *part = &fft->parts[i];
        part->desc = *desc;
        part->desc.batch = batches[i];
        if (i > 0 && batches[i] == 0)
            continue;
        part->aligned = plan_locked(&part->desc, FFTW_ESTIMATE);
        if (!part->aligned) {
            mb_host_fft_destroy(self, fft);
            return mb_fail(MB_STATUS_UNSUPPORTED, NULL,
                           "FFTW has no plan for a %d-D transform of %lld elements per row",
                           desc->rank, (long long)desc->dims[desc->rank - 1]);
        }
    }
    *plan = fft;
    *work_bytes = 0;
    *library_bytes = 0;
    return MB_STATUS_OK;
}

/* The plan for arrays of any alignment; made once, by the first thread that needs it. */
static fftwf_plan unaligned_plan(host_part *part)
{
    fftwf_plan plan = __atomic_load_n(&part->unaligned, __ATOMIC_ACQUIRE);
    if (plan)
        return plan;
    fftwf_plan made = plan_locked(&part->desc, FFTW_ESTIMATE | FFTW_UNALIGNED);
    pthread_mutex_lock(&planner_lock);
    if (!part->unaligned)
        __atomic_store_n(&part->unaligned, made, __ATOMIC_RELEASE);
    else if (made)
        fftwf_destroy_plan(made);
    plan = part->unaligned;
    pthread_mutex_unlock(&planner_lock);
    return plan;
}

static mb_status execute(host_part *part, void *in, void *out)
{
    fftwf_plan chosen = part->aligned;
    if (fftwf_alignment_of(in) || fftwf_alignment_of(out))
        chosen = unaligned_plan(part);
    if (!chosen)
        return mb_fail(MB_STATUS_UNSUPPORTED, NULL,
                       "FFTW has no plan for unaligned arrays of this shape");
    switch (part->desc.kind) {
    case MB_FFT_R2C: fftwf_execute_dft_r2c(chosen, in, out); break;
    case MB_FFT_C2R: fftwf_execute_dft_c2r(chosen, in, out); break;
    default: fftwf_execute_dft(chosen, in, out); break;
    }
    return MB_STATUS_OK;
}

mb_status mb_host_fft_exec(void *self, void *plan, const mb_fft_desc *desc, void *in, void *out,
                           void *work)
{
    (void)self;
    (void)work;
    host_fft *fft = plan;
    const int64_t piece = fft->parts[0].desc.batch;
    const int64_t in_floats = desc->in_distance * (desc->kind == MB_FFT_R2C ? 1 : 2),
                  out_floats = desc->out_distance * (desc->kind == MB_FFT_C2R ? 1 : 2);
    for (int64_t first = 0; first < desc->batch; first += piece) {
        MB_TRY(mb_cancel_check());
        MB_TRY(execute(&fft->parts[desc->batch - first < piece], (float *)in + first * in_floats,
                       (float *)out + first * out_floats));
    }
    return MB_STATUS_OK;
}

const char *mb_host_fft_version(void)
{
    return fftwf_version;
}
