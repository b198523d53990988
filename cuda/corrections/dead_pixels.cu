/*
** dead_pixels on CUDA: a thread for each pixel, which goes through the frames.
*/
#include "ops/corrections/op_dead_pixels.h"
#include "shared/cuda_launch.cuh"

struct pixel_stack {
    const void *data;
    int type;
    int64_t frames, frame, row;
};

static pixel_stack stack_of(const mb_array *array)
{
    pixel_stack s = {};
    if (array) {
        s.data = array->data;
        s.type = array->dtype;
        s.frames = array->shape.dims[0];
        s.frame = array->strides[0];
        s.row = array->strides[1];
    }
    return s;
}

__device__ static mb_dead_pixel pixel_of(const pixel_stack &s, int64_t y, int64_t x)
{
    mb_dead_pixel pixel = {0, 0, 0, false};
    for (int64_t k = 0; k < s.frames; k++)
        mb_dead_pixel_see(&pixel,
                          mb_element_load(s.type, s.data, k * s.frame + y * s.row + x, NULL));
    return pixel;
}

__global__ void __launch_bounds__(MB_THREADS)
    find_dead_pixels(pixel_stack frames, pixel_stack darks, int rule, double least, int64_t rows,
                     int64_t columns, uint8_t *mask, int64_t mask_row, unsigned long long *tally)
{
    unsigned dead = 0;
    MB_GRID_LOOP(i, rows * columns)
    {
        const int64_t y = i / columns, x = i - y * columns;
        const mb_dead_pixel pixel = pixel_of(frames, y, x), dark = pixel_of(darks, y, x);
        const bool is = mb_dead_pixel_is(&pixel, &dark, rule, least);
        mask[y * mask_row + x] = is;
        dead += is;
    }
    dead = mb_block_fold(dead, mb_fold_sum());
    if (threadIdx.x == 0 && dead)
        atomicAdd(tally, (unsigned long long)dead);
}

__global__ void count_dead_pixels(const unsigned long long *tally, double *counts)
{
    *counts = (double)*tally;
}

extern "C" mb_status mb_cuda_dead_pixels(const mb_op_call *call)
{
    const mb_dead_pixels_params *p = (const mb_dead_pixels_params *)call->params;
    const mb_array *frames = call->arrays[MB_DEAD_PIXELS_FRAMES],
                   *mask = call->arrays[MB_DEAD_PIXELS_MASK];
    unsigned long long *tally = (unsigned long long *)call->slots[MB_DEAD_PIXELS_TALLY];
    const int64_t rows = frames->shape.dims[1], columns = frames->shape.dims[2];
    MB_CUDA(cudaMemsetAsync(tally, 0, sizeof *tally, mb_stream(call)));
    if (rows * columns > 0) {
        find_dead_pixels<<<mb_blocks(call, rows * columns, MB_THREADS), MB_THREADS, 0,
                           mb_stream(call)>>>(
            stack_of(frames), stack_of(call->arrays[MB_DEAD_PIXELS_DARKS]), p->rule, p->least, rows,
            columns, (uint8_t *)mask->data, mask->strides[0], tally);
        MB_LAUNCHED("find_dead_pixels");
    }
    count_dead_pixels<<<1, 1, 0, mb_stream(call)>>>(
        tally, (double *)call->arrays[MB_DEAD_PIXELS_COUNTS]->data);
    return MB_LAUNCH_STATUS("count_dead_pixels");
}
