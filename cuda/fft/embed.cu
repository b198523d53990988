/*
** embed on CUDA: an image into padded rows, converted, placed and continued beyond its edges in one
** pass.
*/
#include "shared/grid_rows.cuh"
#include "ops/fft/op_embed.h"

struct embed_job {
    int rank, mode;
    int64_t dims[MB_MAX_RANK];   /* of the result, padded */
    int64_t extent[MB_MAX_RANK]; /* of the image */
    int64_t before[MB_MAX_RANK], from[MB_MAX_RANK], to[MB_MAX_RANK];
    int64_t rows, samples; /* samples of a row */
    float *result;
};

template <class T>
__global__ void __launch_bounds__(MB_THREADS) embed_kernel(const T *a, embed_job job)
{
    const int last = job.rank - 1;
    MB_ROW_LOOP(row, job.rows)
    {
        int64_t rest = row, to = 0, from = 0;
        bool outside = false;
        for (int i = last - 1; i >= 0; i--) {
            int64_t next = rest / job.dims[i], index = rest - next * job.dims[i];
            int64_t source = mb_pad_source(job.mode, index - job.before[i], job.extent[i]);
            rest = next;
            outside = outside || source < 0;
            to += index * job.to[i];
            from += source * job.from[i];
        }
        MB_LANE_LOOP(x, job.dims[last])
        {
            int64_t source = outside || x >= job.samples
                                 ? -1
                                 : mb_pad_source(job.mode, x - job.before[last], job.extent[last]);
            job.result[to + x * job.to[last]] =
                source < 0 ? 0.0f : (float)a[from + source * job.from[last]];
        }
    }
}

extern "C" mb_status mb_cuda_embed(const mb_op_call *call)
{
    const mb_embed_params *p = (const mb_embed_params *)call->params;
    const mb_array *a = call->arrays[MB_EMBED_A], *result = call->arrays[MB_EMBED_RESULT];
    embed_job job;
    job.rank = a->shape.rank;
    job.mode = mb_embed_pad_mode(p->boundary);
    job.rows = 1;
    job.samples = (int64_t)p->size.values[job.rank - 1];
    job.result = (float *)result->data;
    for (int i = 0; i < job.rank; i++) {
        job.dims[i] = result->shape.dims[i];
        job.extent[i] = a->shape.dims[i];
        job.before[i] = mb_margin_amount(&p->before, i);
        job.from[i] = a->strides[i];
        job.to[i] = result->strides[i];
        if (i < job.rank - 1)
            job.rows *= job.dims[i];
    }
    if (job.rows == 0)
        return MB_STATUS_OK;
    unsigned blocks = mb_row_blocks(job.rows);
    if (a->dtype == MB_U8)
        embed_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>((const uint8_t *)a->data, job);
    else if (a->dtype == MB_U16)
        embed_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>((const uint16_t *)a->data, job);
    else
        embed_kernel<<<blocks, MB_THREADS, 0, mb_stream(call)>>>((const float *)a->data, job);
    return MB_LAUNCH_STATUS("embed_kernel");
}
