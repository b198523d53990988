/*
** roll: a circular shift along any axes. Every row of the result is two pieces of one row of the
** source.
*/
#include "ops/array/op_roll.h"
#include "ops/op_args.h"
#include <string.h>

#define PARAMS mb_roll_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_ANY_DTYPE, 1, MB_MAX_RANK, "array; any strides"),
    MB_VECTOR(shift, -1e15, 1e15, "elements",
              "shift towards higher indices: one number per axis, or one for all"),
    MB_ARRAY_OUT("result", MB_ANY_DTYPE, 1, MB_MAX_RANK, "same shape and dtype")};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 5, 7}}, params = {shift = {1, -2, 3}}}",
    "{inputs = {{'u16', 5, 4}}, params = {shift = {0, 9}}}",
    "{inputs = {{'c64', 11}}, params = {shift = 5}}"};

/* Rows of the result that come from one run of rows need that run; others need the whole axis. */
static bool one_run(const mb_roll_params *p, const mb_spec *arrays, int axis, mb_rows rows,
                    mb_rows *run)
{
    const int64_t n = arrays[MB_ROLL_A].shape.dims[axis], count = rows.end - rows.first;
    const int64_t first = n > 0 ? (rows.first + mb_roll_origin(p, axis, n)) % n : 0;
    *run = (mb_rows){first, first + count};
    return run->end <= n;
}

static mb_rows needs(const void *params, const mb_spec *arrays, int axis, mb_rows rows)
{
    mb_rows run;
    if (one_run(params, arrays, axis, rows, &run))
        return run;
    return (mb_rows){0, arrays[MB_ROLL_A].shape.dims[axis]};
}

/* A run is not rolled along this axis. */
static void piece(const mb_spec *arrays, int axis, mb_op_piece *piece, void *params, double *room)
{
    mb_roll_params *p = params;
    const int rank = arrays[MB_ROLL_A].shape.rank;
    mb_rows run;
    if (!one_run(p, arrays, axis, piece->rows, &run))
        return;
    for (int i = 0; i < rank; i++)
        room[i] = i == axis ? 0 : p->shift.values[p->shift.count == 1 ? 0 : i];
    p->shift = (mb_vector){room, rank};
    piece->skip = 0;
}

static const mb_op_split split[] = MB_SPLIT_AXES(.needs = needs, .piece = piece);

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_roll_params *p = params;
    const mb_spec *a = &arrays[MB_ROLL_A];
    MB_TRY(mb_check_axes("shift", &p->shift, a->shape.rank, true));
    MB_TRY(mb_check_whole("shift", &p->shift));
    arrays[MB_ROLL_RESULT] = *a;
    return MB_STATUS_OK;
}

/* n elements from one strided run to another. */
static void move(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n,
                 int64_t bytes)
{
    if (to_step == bytes && from_step == bytes) {
        memcpy(to, from, (size_t)(n * bytes));
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * to_step, from + i * from_step, (size_t)bytes);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_roll_params *p = call->params;
    const mb_array *a = call->arrays[MB_ROLL_A], *result = call->arrays[MB_ROLL_RESULT];
    int last = a->shape.rank - 1;
    int64_t bytes = (int64_t)mb_dtype_bytes(a->dtype), n = a->shape.dims[last], rows = 1;
    int64_t origin = mb_roll_origin(p, last, n);
    int64_t to_step = result->strides[last] * bytes, from_step = a->strides[last] * bytes;
    for (int i = 0; i < last; i++)
        rows *= a->shape.dims[i];
    int threads = rows * n < 65536 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t row = 0; row < rows; row++) {
        if (mb_cancelled())
            continue;
        int64_t rest = row, to = 0, from = 0;
        for (int i = last - 1; i >= 0; i--) {
            int64_t extent = a->shape.dims[i], index = rest % extent;
            rest /= extent;
            to += index * result->strides[i];
            from += (index + mb_roll_origin(p, i, extent)) % extent * a->strides[i];
        }
        char *target = (char *)result->data + to * bytes;
        const char *source = (const char *)a->data + from * bytes;
        move(target, to_step, source + origin * from_step, from_step, n - origin, bytes);
        move(target + (n - origin) * to_step, to_step, source, from_step, origin, bytes);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_roll = {
    .name = "roll",
    .summary = "Circular shift along any axes.",
    .doc = "result[i] = a[(i - shift) mod n] along every axis. mb.fft.fftshift is a roll by n/2, "
           "rounded down; mb.fft.ifftshift undoes it.",
    .reference = "numpy.roll",
    MB_OP_SPLIT_PARTS,
    .strides = MB_STRIDES_ANY,
};
