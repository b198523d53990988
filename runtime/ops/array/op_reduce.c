/*
** reduce: sum, minimum, maximum, mean or Euclidean norm, over all elements or along one axis. Sums
** are in double precision in a fixed order (op_reduce.h), so results do not depend on the number of
** threads. Shapes: without the axis; a scalar (rank 0) for all.
*/
#include "ops/array/op_reduce.h"
#include "ops/op_args.h"
#include <math.h>

#define PARAMS mb_reduce_params

enum { STRIP = 64 }; /* outputs taken together where they are side by side in memory */

#define ACCEPTED (MB_REAL_DTYPES | MB_BIT(MB_C64) | MB_BIT(MB_C128))

static const char *const functions[] = {"sum", "min", "max", "mean", "norm", "positive", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", ACCEPTED, 0, MB_MAX_RANK, "the array; any strides"),
    MB_ENUM_REQUIRED(fn, functions,
                     "the reduction; norm is sqrt(sum |x|^2), positive the sum "
                     "without finite values below 0"),
    MB_INT(axis, -MB_MAX_RANK, MB_MAX_RANK, 0, NULL,
           "axis to reduce; 1-based, negative from the end; 0: all elements"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F64) | MB_BIT(MB_C128), 0, MB_MAX_RANK,
                 "f64, or c128 for sum and mean of complex arrays")};

static const char *const samples[] = {
    "{inputs = {{'f32', 7, 5, 33}}, params = {fn = 'sum'}}",
    "{inputs = {{'u16', 3, 5, 17}}, params = {fn = 'max', axis = 2}}",
    "{inputs = {{'c64', 5, 13}}, params = {fn = 'mean', axis = -1}}",
    "{inputs = {{'f32', 2, 20011}}, params = {fn = 'norm', axis = 2}}",
    "{inputs = {{'u16', 20011, 3}}, params = {fn = 'sum', axis = 1}}",
    "{inputs = {{'u8', 5, 9}}, params = {fn = 'sum'}}",
    "{inputs = {{'f32', 20, 5000}}, params = {fn = 'sum', axis = 1}}",
    "{inputs = {{'f32', 4, 3, 5}}, params = {fn = 'min'}}",
    "{inputs = {{'f32', 9, 2, 65}}, params = {fn = 'mean', axis = 1}}",
    "{inputs = {{'f32', 3, 9001, low = -1}}, params = {fn = 'positive'}}",
    "{inputs = {{'f32', 9, 2, 65, low = -1}}, params = {fn = 'positive', axis = 1}}"};

/* Along an axis that is reduced, minima and maxima are combined, and sums of whole numbers, which
** are exact. */
static bool adapt(const void *params, const mb_spec *arrays, mb_op_cut *cut)
{
    const mb_reduce_params *p = params;
    const int reduced = mb_reduce_axis(p, arrays[MB_REDUCE_A].shape.rank), axis = cut->split->axis;
    if (reduced >= 0 && axis != reduced) {
        cut->axes[MB_REDUCE_RESULT] = axis - (axis > reduced ? 1 : 0);
        return true;
    }
    cut->axes[MB_REDUCE_RESULT] = -1;
    cut->combine = p->fn == MB_REDUCE_MIN   ? MB_COMBINE_MIN
                   : p->fn == MB_REDUCE_MAX ? MB_COMBINE_MAX
                                            : MB_COMBINE_SUM;
    return p->fn == MB_REDUCE_MIN || p->fn == MB_REDUCE_MAX ||
           (p->fn == MB_REDUCE_SUM && mb_dtype_kind(arrays[MB_REDUCE_A].dtype) == MB_CLASS_INT);
}

static const mb_op_split split[] =
    MB_SPLIT_AXES(.when =
                      "the axis is not reduced, or the function is min, max, or sum of integers",
                  .adapt = adapt);

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_reduce_params *p = params;
    const mb_spec *a = &arrays[MB_REDUCE_A];
    bool complex_in = mb_dtype_kind(a->dtype) == MB_CLASS_COMPLEX;
    mb_spec result = {true, complex_in && p->fn != MB_REDUCE_NORM ? MB_C128 : MB_F64, {0, {0}}};
    int axis;
    if (p->axis > a->shape.rank || -p->axis > a->shape.rank)
        return mb_fail(MB_STATUS_SHAPE, "axis", "axis is %lld; the array has %d axes",
                       (long long)p->axis, a->shape.rank);
    if (complex_in &&
        (p->fn == MB_REDUCE_MIN || p->fn == MB_REDUCE_MAX || p->fn == MB_REDUCE_POSITIVE))
        return mb_fail(MB_STATUS_DTYPE, "a",
                       "complex numbers (%s) have no order: min, max and positive need real ones",
                       mb_dtype_name(a->dtype));
    if ((p->fn == MB_REDUCE_MIN || p->fn == MB_REDUCE_MAX) && mb_reduce_length(p, &a->shape) == 0)
        return mb_fail(MB_STATUS_SHAPE, "a", "a is empty and has no %s", functions[p->fn]);
    axis = mb_reduce_axis(p, a->shape.rank);
    for (int i = 0; axis >= 0 && i < a->shape.rank; i++)
        if (i != axis)
            result.shape.dims[result.shape.rank++] = a->shape.dims[i];
    arrays[MB_REDUCE_RESULT] = result;
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    int64_t blocks = mb_reduce_blocks(mb_reduce_length(params, &arrays[MB_REDUCE_A].shape));
    uint64_t outputs = mb_shape_elements(&arrays[MB_REDUCE_RESULT].shape);
    uint64_t cells = blocks > 1 ? mb_bytes_mul(outputs, (uint64_t)blocks) : 0;
    mb_planner_slot(planner, "partials", mb_bytes_mul(cells, sizeof(mb_reduce_cell)), 0, 0);
}

static mb_reduce_cell neutral(int fn)
{
    mb_reduce_cell cell = {fn == MB_REDUCE_MIN   ? INFINITY
                           : fn == MB_REDUCE_MAX ? -INFINITY
                                                 : 0.0,
                           0.0};
    return cell;
}

/* b after a; the same rule for elements and for blocks. */
static inline void join(int fn, mb_reduce_cell *a, double re, double im)
{
    if (fn == MB_REDUCE_MIN)
        a->re = re < a->re || re != re ? re : a->re;
    else if (fn == MB_REDUCE_MAX)
        a->re = re > a->re || re != re ? re : a->re;
    else {
        a->re += re;
        a->im += im;
    }
}

/* Element k of a block is added to chain k % 4, so that additions overlap. This order is that of
** reduce_strip too, because the layout of an array and its other extents decide in which runs, and
** by which of the two, the elements of an output are added. */
#define SUM(type, term_re, term_im)                                                                \
    do {                                                                                           \
        const type *first = from;                                                                  \
        int64_t i = 0;                                                                             \
        for (; i < n && (i + phase) % 4 != 0; i++) {                                               \
            const type *x = first + i * step;                                                      \
            chains[(i + phase) % 4].re += term_re;                                                 \
            chains[(i + phase) % 4].im += term_im;                                                 \
        }                                                                                          \
        double re[4], im[4];                                                                       \
        for (int j = 0; j < 4; j++) {                                                              \
            re[j] = chains[j].re;                                                                  \
            im[j] = chains[j].im;                                                                  \
        }                                                                                          \
        for (; i + 4 <= n; i += 4)                                                                 \
            for (int j = 0; j < 4; j++) {                                                          \
                const type *x = first + (i + j) * step;                                            \
                re[j] += term_re;                                                                  \
                im[j] += term_im;                                                                  \
            }                                                                                      \
        for (int j = 0; i < n; i++, j++) {                                                         \
            const type *x = first + i * step;                                                      \
            re[j] += term_re;                                                                      \
            im[j] += term_im;                                                                      \
        }                                                                                          \
        for (int j = 0; j < 4; j++)                                                                \
            chains[j] = (mb_reduce_cell){re[j], im[j]};                                            \
    } while (0)
#define EACH(type, value)                                                                          \
    do {                                                                                           \
        const type *s = from;                                                                      \
        if (fn == MB_REDUCE_MIN || fn == MB_REDUCE_MAX) {                                          \
            for (int64_t i = 0; i < n; i++)                                                        \
                join(fn, &chains[i % 4], (double)value(s[i * stride]), 0);                         \
        } else if (fn == MB_REDUCE_NORM)                                                           \
            SUM(type, (double)value(*x) * (double)value(*x), 0);                                   \
        else if (fn == MB_REDUCE_POSITIVE)                                                         \
            SUM(type, mb_reduce_positive((double)value(*x)), 0);                                   \
        else                                                                                       \
            SUM(type, (double)value(*x), 0);                                                       \
    } while (0)
#define EACH_COMPLEX(type)                                                                         \
    do {                                                                                           \
        if (fn == MB_REDUCE_NORM)                                                                  \
            SUM(type, (double)x[0] * x[0] + (double)x[1] * x[1], 0);                               \
        else                                                                                       \
            SUM(type, x[0], x[1]);                                                                 \
    } while (0)

/* Adds a run of n elements to the four chains; `phase` elements of the block are there already. */
static void reduce_run(mb_dtype dtype, int fn, const void *from, int64_t stride, int64_t n,
                       int64_t phase, mb_reduce_cell *chains)
{
    int64_t step = mb_dtype_kind(dtype) == MB_CLASS_COMPLEX ? 2 * stride : stride;
    switch (dtype) {
    case MB_U8: EACH(uint8_t, ); break;
    case MB_U16: EACH(uint16_t, ); break;
    case MB_I32: EACH(int32_t, ); break;
    case MB_F16: EACH(uint16_t, mb_half_to_float); break;
    case MB_F32: EACH(float, ); break;
    case MB_F64: EACH(double, ); break;
    case MB_C64: EACH_COMPLEX(float); break;
    case MB_C128: EACH_COMPLEX(double); break;
    default: break;
    }
}

/* Adds a line of n adjacent elements, one to each cell. */
#define ACROSS(type, value)                                                                        \
    do {                                                                                           \
        const type *s = from;                                                                      \
        if (fn == MB_REDUCE_MIN || fn == MB_REDUCE_MAX)                                            \
            for (int64_t i = 0; i < n; i++)                                                        \
                join(fn, &cells[i], (double)value(s[i]), 0);                                       \
        else if (fn == MB_REDUCE_NORM)                                                             \
            for (int64_t i = 0; i < n; i++)                                                        \
                cells[i].re += (double)value(s[i]) * (double)value(s[i]);                          \
        else if (fn == MB_REDUCE_POSITIVE)                                                         \
            for (int64_t i = 0; i < n; i++)                                                        \
                cells[i].re += mb_reduce_positive((double)value(s[i]));                            \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                cells[i].re += (double)value(s[i]);                                                \
    } while (0)
#define ACROSS_COMPLEX(type)                                                                       \
    do {                                                                                           \
        const type *s = from;                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                          \
            double re = (double)s[2 * i], im = (double)s[2 * i + 1];                               \
            cells[i].re += fn == MB_REDUCE_NORM ? re * re + im * im : re;                          \
            cells[i].im += fn == MB_REDUCE_NORM ? 0 : im;                                          \
        }                                                                                          \
    } while (0)

static void reduce_across(mb_dtype dtype, int fn, const void *from, int64_t n,
                          mb_reduce_cell *cells)
{
    switch (dtype) {
    case MB_U8: ACROSS(uint8_t, ); break;
    case MB_U16: ACROSS(uint16_t, ); break;
    case MB_I32: ACROSS(int32_t, ); break;
    case MB_F16: ACROSS(uint16_t, mb_half_to_float); break;
    case MB_F32: ACROSS(float, ); break;
    case MB_F64: ACROSS(double, ); break;
    case MB_C64: ACROSS_COMPLEX(float); break;
    case MB_C128: ACROSS_COMPLEX(double); break;
    default: break;
    }
}

/* The cell that four chains come to. */
static mb_reduce_cell join_chains(int fn, const mb_reduce_cell *chains, int64_t pitch)
{
    mb_reduce_cell cell = neutral(fn);
    if (fn == MB_REDUCE_MIN || fn == MB_REDUCE_MAX) {
        for (int j = 0; j < 4; j++)
            join(fn, &cell, chains[j * pitch].re, 0);
        return cell;
    }
    cell.re += (chains[0].re + chains[pitch].re) + (chains[2 * pitch].re + chains[3 * pitch].re);
    cell.im += (chains[0].im + chains[pitch].im) + (chains[2 * pitch].im + chains[3 * pitch].im);
    return cell;
}

/* Blocks of `count` outputs that lie side by side: `length` lines of elements, `bytes` apart. */
static void reduce_strip(mb_dtype dtype, int fn, const char *from, int64_t bytes, int64_t length,
                         int64_t count, mb_reduce_cell *cells)
{
    mb_reduce_cell chains[4 * STRIP];
    for (int i = 0; i < 4 * STRIP; i++)
        chains[i] = neutral(fn);
    for (int64_t k = 0; k < length; k++)
        reduce_across(dtype, fn, from + k * bytes, count, chains + k % 4 * STRIP);
    for (int64_t i = 0; i < count; i++)
        cells[i] = join_chains(fn, chains + i, STRIP);
}

typedef struct reduction {
    const mb_array *a;
    int fn;
    int rank; /* of the reduced elements: the axes they run over, in order */
    int64_t dims[MB_MAX_RANK], strides[MB_MAX_RANK];
    int64_t length, blocks;
} reduction;

/* Offset of output `index` (row-major over the axes that stay). */
static int64_t output_offset(const mb_array *a, int axis, int64_t index)
{
    int64_t offset = 0;
    for (int i = a->shape.rank - 1; axis >= 0 && i >= 0; i--) {
        if (i == axis)
            continue;
        offset += index % a->shape.dims[i] * a->strides[i];
        index /= a->shape.dims[i];
    }
    return offset;
}

/* Elements first ... first + count - 1 of the reduced ones, from element offset `base`, run by
** run. */
static mb_reduce_cell reduce_block(const reduction *r, int64_t base, int64_t first, int64_t count)
{
    mb_reduce_cell chains[4];
    int64_t bytes = (int64_t)mb_dtype_bytes(r->a->dtype), done = 0;
    int last = r->rank - 1;
    for (int j = 0; j < 4; j++)
        chains[j] = neutral(r->fn);
    while (done < count) {
        int64_t rest = first, offset = base, x = last >= 0 ? first % r->dims[last] : 0;
        int64_t n = last >= 0 ? r->dims[last] - x : 1;
        n = n < count - done ? n : count - done;
        for (int i = last; i >= 0; i--) {
            offset += rest % r->dims[i] * r->strides[i];
            rest /= r->dims[i];
        }
        reduce_run(r->a->dtype, r->fn, (const char *)r->a->data + offset * bytes,
                   last >= 0 ? r->strides[last] : 1, n, done, chains);
        first += n;
        done += n;
    }
    return join_chains(r->fn, chains, 1);
}

/* The axes to reduce, neighbors joined where memory allows: row-major order is kept. */
static reduction describe(const mb_reduce_params *p, const mb_array *a)
{
    reduction r = {.a = a, .fn = p->fn};
    int axis = mb_reduce_axis(p, a->shape.rank);
    r.length = mb_reduce_length(p, &a->shape);
    r.blocks = mb_reduce_blocks(r.length);
    for (int i = 0; i < a->shape.rank; i++) {
        if (axis >= 0 && i != axis)
            continue;
        if (r.rank > 0 && r.strides[r.rank - 1] == a->strides[i] * a->shape.dims[i]) {
            r.dims[r.rank - 1] *= a->shape.dims[i];
            r.strides[r.rank - 1] = a->strides[i];
        } else {
            r.dims[r.rank] = a->shape.dims[i];
            r.strides[r.rank++] = a->strides[i];
        }
    }
    return r;
}

static void store(const mb_reduce_params *p, int64_t length, mb_array *result, int64_t index,
                  mb_reduce_cell cell)
{
    int64_t offset = 0;
    double *to;
    if (p->fn == MB_REDUCE_MEAN) {
        cell.re /= (double)length;
        cell.im /= (double)length;
    } else if (p->fn == MB_REDUCE_NORM)
        cell.re = sqrt(cell.re);
    for (int i = result->shape.rank - 1; i >= 0; i--) {
        offset += index % result->shape.dims[i] * result->strides[i];
        index /= result->shape.dims[i];
    }
    to = (double *)result->data + offset * (result->dtype == MB_C128 ? 2 : 1);
    to[0] = cell.re;
    if (result->dtype == MB_C128)
        to[1] = cell.im;
}

/* Block `block` of outputs first ... first + count - 1, to their partial cells or, if it is the
** only one, to the result. Outputs side by side in memory are taken together, line by line. */
static void reduce_outputs(const mb_op_call *call, const reduction *r, int axis, int64_t first,
                           int64_t count, int64_t block)
{
    const mb_reduce_params *p = call->params;
    mb_reduce_cell *partials = call->slots[MB_REDUCE_PARTIALS], cells[STRIP];
    int64_t start = block * MB_REDUCE_BLOCK, base = output_offset(r->a, axis, first);
    int64_t length = r->length - start < MB_REDUCE_BLOCK ? r->length - start : MB_REDUCE_BLOCK;
    int64_t bytes = (int64_t)mb_dtype_bytes(r->a->dtype);
    if (count == 1)
        cells[0] = reduce_block(r, base, start, length);
    else
        reduce_strip(r->a->dtype, r->fn,
                     (const char *)r->a->data + (base + start * r->strides[0]) * bytes,
                     r->strides[0] * bytes, length, count, cells);
    for (int64_t i = 0; i < count; i++)
        if (r->blocks > 1)
            partials[(first + i) * r->blocks + block] = cells[i];
        else
            store(p, r->length, call->arrays[MB_REDUCE_RESULT], first + i, cells[i]);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_reduce_params *p = call->params;
    const mb_array *a = call->arrays[MB_REDUCE_A];
    mb_array *result = call->arrays[MB_REDUCE_RESULT];
    const mb_reduce_cell *partials = call->slots[MB_REDUCE_PARTIALS];
    reduction r = describe(p, a);
    int axis = mb_reduce_axis(p, a->shape.rank), last = a->shape.rank - 1;
    int64_t outputs = (int64_t)mb_array_elements(result), blocks = r.blocks > 1 ? r.blocks : 1;
    bool across = axis >= 0 && axis != last && a->strides[last] == 1;
    int64_t line = across ? a->shape.dims[last] : 1, strips = (line + STRIP - 1) / STRIP;
    int threads = outputs * r.length < 32768 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < outputs / line * strips * blocks; i++) {
        if (mb_cancelled())
            continue;
        int64_t x = i / blocks % strips * STRIP, first = i / blocks / strips * line + x;
        reduce_outputs(call, &r, axis, first, line - x < STRIP ? line - x : STRIP, i % blocks);
    }
    if (blocks > 1)
        for (int64_t i = 0; i < outputs; i++) {
            mb_reduce_cell cell = neutral(p->fn);
            for (int64_t b = 0; b < blocks; b++)
                join(p->fn, &cell, partials[i * blocks + b].re, partials[i * blocks + b].im);
            store(p, r.length, result, i, cell);
        }
    return MB_STATUS_OK;
}

const mb_op mb_op_reduce = {
    .name = "reduce",
    .summary = "Sum, minimum, maximum, mean or norm, over all elements or along one axis.",
    .doc = "The result is computed in double precision for every input type (c128 for sum and mean "
           "of complex arrays), in a fixed order: it is the same for any number of threads. NaN "
           "wins in min and max.\n"
           "The result lacks the reduced axis. Over all elements it is a scalar array, which "
           "item() reads.\n"
           "An empty sum is 0 and an empty mean is NaN. An empty min or max is an error.",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ANY,
    .tolerance = 1e-12, /* double sums in another order */
};
