/*
** histogram: how many values lie in each bin. a (any shape and strides) -> counts f64[bins + 3].
** Each worker counts into a table of its own; the tables are added at the end.
*/
#include "ops/statistics/op_histogram.h"
#include "ops/array/strided.h"
#include "ops/op_args.h"

#define PARAMS mb_histogram_params
#define PIECE (1 << 16)                   /* values between two looks at the cancel flag */
#define TABLES_BYTES (UINT64_C(64) << 20) /* of all workers: fewer of them where tables are large */

static const char *const bits[] = {"value", "high", "low", NULL};

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_F16) | MB_BIT(MB_F32), 0,
                MB_MAX_RANK, "values"),
    MB_ENUM(bits, bits, MB_HISTOGRAM_VALUE,
            "what the bins are of: values, or the high or the low half of their 32 ordered bits"),
    MB_INT(bins, 1, MB_HISTOGRAM_HALVES, 256, NULL, "bins between low and high, for values"),
    MB_FLOAT(low, MB_ANY, 0, NULL, "where the first bin begins, for values"),
    MB_FLOAT(high, MB_ANY, 1, NULL, "where the last bin ends, inclusive, for values; above low"),
    MB_VECTOR_OPTION(prefix, 0, MB_HISTOGRAM_HALVES - 1, NULL,
                     "for the low half: the high halves, 1 to 16 of them, of the values to count"),
    MB_ARRAY_OUT(
        "counts", MB_BIT(MB_F64), 1, 1,
        "the bins, then how many values are below them, above them, and NaN; none with into"),
    MB_ARRAY_INOUT_OPTION("into", MB_BIT(MB_F64), 1, 1,
                          "counts that these are added to, in place of a new array")};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 5, 17}}, params = {bins = 11, low = 0.1, high = 0.8}}",
    "{inputs = {{'f16', 301}, into = {'f64', 65539}}, params = {bits = 'high'}}",
    "{inputs = {{'u16', 7, 1, 9}}, params = {bits = 'low', prefix = {17025, 17150}}}",
    "{inputs = {{'u8', 40, 30}}, params = {bins = 200, low = -0.5, high = 199.5}}"};

static mb_status check_values(const mb_histogram_params *p)
{
    if (!(p->low < p->high) || !isfinite(p->high - p->low))
        return mb_fail(MB_STATUS_ARGUMENT, "high",
                       "high must lie above low, both finite; low is %g, high is %g", p->low,
                       p->high);
    return MB_STATUS_OK;
}

static mb_status check_prefix(const mb_histogram_params *p)
{
    const long long count = p->prefix.count;
    if (p->bits != MB_HISTOGRAM_LOW)
        return count == 0
                   ? MB_STATUS_OK
                   : mb_fail(MB_STATUS_ARGUMENT, "prefix",
                             "prefix goes with bits = \"low\"; bits is \"%s\"", bits[p->bits]);
    if (count < 1 || count > MB_HISTOGRAM_PREFIXES)
        return mb_fail(MB_STATUS_ARGUMENT, "prefix",
                       "bits = \"low\" counts values of 1 to %d prefixes; %lld are given",
                       MB_HISTOGRAM_PREFIXES, count);
    return mb_check_whole("prefix", &p->prefix);
}

static bool adapt(const void *params, const mb_spec *arrays, mb_op_cut *cut)
{
    (void)params;
    cut->axes[MB_HISTOGRAM_COUNTS] = -1;
    return !arrays[MB_HISTOGRAM_INTO].present;
}

static const mb_op_split split[] =
    MB_SPLIT_AXES(.when = "into is not given", .adapt = adapt, .combine = MB_COMBINE_SUM);

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_histogram_params *p = params;
    const mb_spec *into = &arrays[MB_HISTOGRAM_INTO];
    MB_TRY(check_prefix(p));
    if (p->bits == MB_HISTOGRAM_VALUE)
        MB_TRY(check_values(p));
    const int64_t counters = mb_histogram_bins(p) + MB_HISTOGRAM_OUTSIDE;
    if (into->present && into->shape.dims[0] != counters)
        return mb_fail(MB_STATUS_SHAPE, "into", "into has %lld elements; these counts have %lld",
                       (long long)into->shape.dims[0], (long long)counters);
    arrays[MB_HISTOGRAM_COUNTS] = (mb_spec){!into->present, MB_F64, {1, {counters}}};
    return MB_STATUS_OK;
}

/* How many workers count, for tables of so many counters. */
static int64_t workers_of(uint64_t elements, int64_t counters, int threads)
{
    const uint64_t tables = TABLES_BYTES / sizeof(uint64_t) / (uint64_t)counters;
    uint64_t workers = elements / MB_WALK_SERIAL + 1;
    workers = workers < (uint64_t)threads ? workers : (uint64_t)threads;
    workers = workers < tables ? workers : tables;
    return workers < 1 ? 1 : (int64_t)workers;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const int64_t counters = mb_histogram_bins(params) + MB_HISTOGRAM_OUTSIDE;
    const mb_device_facts *facts = &planner->device->facts;
    const uint64_t elements = mb_shape_elements(&arrays[MB_HISTOGRAM_A].shape);
    const int64_t tables =
        facts->compute_capability == 0 ? workers_of(elements, counters, facts->threads) : 1;
    mb_planner_slot(planner, "tables",
                    mb_bytes_mul((uint64_t)(tables * counters), sizeof(uint64_t)), 0, 0);
}

#define COUNT(type, value, counter)                                                                \
    for (int64_t i = 0; i < piece->count; i++)                                                     \
    table[counter(rule, (float)value(((const type *)from)[i * piece->stride[0]]))]++
#define COUNT_BY(type, value)                                                                      \
    do {                                                                                           \
        if (rule->bits == MB_HISTOGRAM_VALUE)                                                      \
            COUNT(type, value, mb_histogram_of_value);                                             \
        else if (rule->bits == MB_HISTOGRAM_HIGH)                                                  \
            COUNT(type, value, mb_histogram_of_high);                                              \
        else                                                                                       \
            COUNT(type, value, mb_histogram_of_low);                                               \
    } while (0)

static void count_piece(const mb_histogram_rule *rule, mb_dtype dtype, const void *from,
                        const mb_walk_piece *piece, uint64_t *table)
{
    switch (dtype) {
    case MB_U8: COUNT_BY(uint8_t, ); break;
    case MB_U16: COUNT_BY(uint16_t, ); break;
    case MB_F16: COUNT_BY(uint16_t, mb_half_to_float); break;
    default: COUNT_BY(float, ); break;
    }
}

/* Every workers-th piece, from number `worker` on. */
static void count_pieces(const mb_array *a, const mb_histogram_rule *rule, const mb_walk *walk,
                         int64_t worker, int64_t workers, uint64_t *table)
{
    const int64_t bytes = (int64_t)mb_dtype_bytes(a->dtype);
    memset(table, 0, (size_t)(rule->bins + MB_HISTOGRAM_OUTSIDE) * sizeof *table);
    for (int64_t i = worker; i < walk->pieces && !mb_cancelled(); i += workers) {
        const mb_walk_piece piece = mb_walk_at(walk, i);
        count_piece(rule, a->dtype, (const char *)a->data + piece.offset[0] * bytes, &piece, table);
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_array *a = call->arrays[MB_HISTOGRAM_A], *into = call->arrays[MB_HISTOGRAM_INTO];
    const mb_array *counts = into ? into : call->arrays[MB_HISTOGRAM_COUNTS];
    const mb_histogram_rule rule = mb_histogram_rule_of(call->params);
    const int64_t *strides[] = {a->strides};
    const mb_walk walk = mb_walk_make(&a->shape, 1, strides, PIECE);
    uint64_t *tables = call->slots[MB_HISTOGRAM_TABLES];
    const int64_t counters = rule.bins + MB_HISTOGRAM_OUTSIDE;
    const int64_t workers =
        (int64_t)(call->slot_bytes[MB_HISTOGRAM_TABLES] / sizeof *tables) / counters;
#pragma omp parallel for schedule(static, 1) num_threads((int)workers)
    for (int64_t w = 0; w < workers; w++)
        count_pieces(a, &rule, &walk, w, workers, tables + w * counters);
    double *to = counts->data;
#pragma omp parallel for schedule(static) num_threads((int)workers)
    for (int64_t i = 0; i < counters; i++) {
        uint64_t sum = 0;
        for (int64_t w = 0; w < workers; w++)
            sum += tables[w * counters + i];
        to[i * counts->strides[0]] = (double)sum + (into ? to[i * counts->strides[0]] : 0);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_histogram = {
    .name = "histogram",
    .summary = "Counts values in bins, exactly; counts of parts add up to those of the whole.",
    .doc =
        "bits = \"value\": bins of equal width from low to high. A value v is in bin "
        "floor((v - low) * bins / (high - low)), counted from 0, and high itself in the last one.\n"
        "bits = \"high\" and \"low\" find percentiles exactly, in two passes. The 32 bits of a "
        "value as f32, in the order of values (-0 before 0), have a high and a low half of 16 "
        "bits. \"high\" counts in 65536 bins by the high half. \"low\" takes the values that have "
        "one of the high halves in prefix, and counts them by the low half, in 65536 bins for each "
        "prefix, one prefix after the other. A prefix that is given twice counts at its first "
        "place.\n"
        "Behind the bins stand three more counts: values below the bins, above them, and NaN. "
        "For \"low\", below are values whose high half is less than the first prefix, above all "
        "others that have no such prefix.\n"
        "into is an array of such counts: this call adds to it, and makes no new array. Counts are "
        "whole numbers, exact below 2^53, and do not depend on how an array was cut.",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ANY,
};
