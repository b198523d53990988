/*
** fourier_project: what the host and the CUDA kernel share. Arrays: volume (in), result (out):
** (rows, angles, cols). The exact transpose of fourier_reconstruct with filter none, so everything
** about geometry and sizes is asked of that operator, with the parameters of
** mb_fourier_project_adjoint: its rows are this operator's results, its region of interest is the
** volume.
**
** Two slices make one complex image z = even + i odd, and a batch of 1 to 8 pairs goes through
** together. With the numbering of op_fourier_reconstruct.h, per batch:
**   7 image times mask, scale / N, inverse of the window's transform and (-1)^(x + y)
**   6 2-D forward transform: G x G cells, frequency 0 in the middle
**   5 samples k = -top ... top of every ray, by the window's W x W cells around each
**   4 times exp(-2 pi i k c_a / N); 0 for the lowest frequency
**   3 inverse transform
**   2 the first cols of N points are two rows
** The transpose of z -> M z, M complex, as a map of pairs of reals is the conjugate transpose of M:
** so the small error by which slices of a pair leak into each other is transposed, too.
** Host: step 6 goes along y with step 7, a few columns at a time, then along x line by line; steps
** 5 to 2 ray by ray. All in each thread's own `rows` slot. CUDA: steps 7 and 6 are a kernel along x
** that writes lines in tiles, and one along y (`own`), steps 4 to 2 one kernel after step 5
** (`fused`), where they take the lengths; else transforms are the library's, one pair at a time. A
** pair does not depend on the others of the call: two slices are a packet.
*/
#ifndef MB_OPS_OP_FOURIER_PROJECT_H
#define MB_OPS_OP_FOURIER_PROJECT_H

#include "ops/tomography/op_fourier_reconstruct.h"

typedef struct mb_fourier_project_params {
    mb_vector angles; /* rad */
    int64_t cols;     /* 0 = nx of the full slice */
    double center;    /* px; NAN = (cols - 1) / 2 */
    mb_vector shifts; /* px, one per angle, or absent */
    mb_vector size;   /* {ny, nx}, {n} or absent = the volume's */
    mb_vector roi;    /* {y0, y1, x0, x1} or absent */
    double circle;
    double scale;
    int accuracy;
    int64_t pairs;  /* 0 = auto */
    int64_t period; /* 0 = auto */
} mb_fourier_project_params;

enum { MB_FOURIER_PROJECT_VOLUME, MB_FOURIER_PROJECT_RESULT };
enum { MB_FOURIER_PROJECT_IMAGE, MB_FOURIER_PROJECT_ROW }; /* FFTs of the host */
/* Slots: the tables of op_fourier_reconstruct.h, then: */
enum {
    MB_FOURIER_PROJECT_ROWS = MB_FOURIER_TABLES, /* host: a thread's; cuda: 0 bytes */
    MB_FOURIER_PROJECT_LINES,   /* own: complex [pair][x / C][y][C]: cuda/../fourier_embed.cuh */
    MB_FOURIER_PROJECT_CELLS,   /* own: complex [x][y][V]; else [pair][y][x] */
    MB_FOURIER_PROJECT_SAMPLES, /* cuda: complex [pair][angle][N]; host: 0 bytes */
    MB_FOURIER_PROJECT_WORK     /* of the first FFT, and so on */
};

/* The reconstruction that is transposed. `size` has room for two numbers, which the parameters
** point to. `sino` becomes the shape of the result. */
static inline mb_fourier_reconstruct_params
mb_fourier_project_adjoint(const mb_fourier_project_params *p, const mb_shape *volume, double *size,
                           mb_shape *sino)
{
    const int rank = volume->rank;
    mb_fourier_reconstruct_params a = {0};
    size[0] = p->size.count > 0 ? p->size.values[0] : (double)volume->dims[rank - 2];
    size[1] = p->size.count > 1   ? p->size.values[1]
              : p->size.count > 0 ? p->size.values[0]
                                  : (double)volume->dims[rank - 1];
    a.size.values = size;
    a.size.count = 2;
    a.angles = p->angles;
    a.center = p->center;
    a.shifts = p->shifts;
    a.roi = p->roi;
    a.circle = p->circle;
    a.scale = p->scale;
    a.filter = MB_RAMP_NONE;
    a.cutoff = 1;
    a.accuracy = p->accuracy;
    a.pairs = p->pairs;
    a.period = p->period;
    *sino = *volume;
    sino->dims[rank - 2] = p->angles.count;
    sino->dims[rank - 1] = p->cols > 0 ? p->cols : (int64_t)size[1];
    return a;
}

/* All of a call that is worked out from its parameters. */
typedef struct mb_fourier_project_job {
    double size[2];
    mb_fourier_reconstruct_params adjoint; /* points to size */
    mb_parallel_geometry g;
    mb_fourier_layout l; /* `fused`: a block of l.threads_row can take a row */
    int64_t row_threads; /* fused: l.samples is a multiple of it */
    int image, row;      /* FFTs, where the library does them */
    bool host;
} mb_fourier_project_job;

/* `job` stays where it is: its parameters point into it. l.samples and l.grid are 0 where no kernel
** takes them: the caller has their sizes from the FFT library, and calls mb_fourier_project_batch
** then. */
static inline void mb_fourier_project_begin(mb_fourier_project_job *job,
                                            const mb_fourier_project_params *p,
                                            const mb_shape *volume, const mb_device_facts *facts)
{
    mb_shape sino;
    job->adjoint = mb_fourier_project_adjoint(p, volume, job->size, &sino);
    job->g = mb_fourier_geometry(&job->adjoint, &sino);
    job->l = mb_fourier_layout_of(&job->adjoint, &job->g, facts);
    job->host = facts->compute_capability == 0;
    job->row_threads = job->l.padded / 16;
    job->l.fused = !job->host && job->l.samples > 0 && mb_fused_fft_fits(facts, job->l.samples, 1);
    job->image = 0;
    job->row = job->l.own ? 0 : 1;
}

static inline void mb_fourier_project_batch(mb_fourier_project_job *job,
                                            const mb_device_facts *facts)
{
    const mb_fourier_layout *l = &job->l;
    const uint64_t lines = (uint64_t)(l->own ? l->grid + job->g.y1 - job->g.y0 : l->grid);
    const uint64_t samples = job->host ? 0 : (uint64_t)(job->g.angles * l->samples);
    job->l.pairs =
        mb_fourier_pairs(job->g.rows, job->adjoint.pairs, 8 * ((uint64_t)l->grid * lines + samples),
                         job->host ? MB_FOURIER_HOST_BYTES : facts->total_bytes / 8);
}

/* As it was planned. */
static inline void mb_fourier_project_planned(mb_fourier_project_job *job, const mb_op_call *call)
{
    mb_fourier_project_begin(job, (const mb_fourier_project_params *)call->params,
                             &call->arrays[MB_FOURIER_PROJECT_VOLUME]->shape, &call->device->facts);
    if (job->l.samples == 0)
        job->l.samples = call->ffts[job->row]->desc.dims[0];
    if (job->l.grid == 0)
        job->l.grid = call->ffts[job->image]->desc.dims[0];
    mb_fourier_project_batch(job, &call->device->facts);
}

/* Floats of a thread of the host: rows of two pairs, one that is transformed and phases; or columns
** of the grid. */
int64_t mb_fourier_project_host_pitch(int64_t samples, int64_t grid);
mb_status mb_fourier_project_host(const mb_op_call *call);

#endif
