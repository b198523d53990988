/*
** Medians of windows on the host, for 64 columns at a time. The work of a window is a list of steps
** on rows of 64 keys: the k[0] * k[1] values above each other in a column are sorted by Batcher's
** merge exchange, sorted columns are merged with their neighbors by twos and fours, and what is left
** over joins at the end. Neighboring results share all but the last merges. Steps that no median
** depends on are left out.
*/
#include "core/multiversion.h"
#include "ops/filter/median_window.h"
#include "ops/op_args.h"

#define COLUMNS MB_MEDIAN_COLUMNS

const char *const mb_median_modes[] = {"edge", "reflect", "symmetric", "wrap", NULL};

mb_status mb_median_check(const mb_vector *size, int rank)
{
    int64_t count = 1;
    MB_TRY(mb_check_axes("size", size, rank, true));
    MB_TRY(mb_check_whole("size", size));
    for (int i = 0; i < rank; i++) {
        const int64_t k = (int64_t)size->values[size->count == 1 ? 0 : i];
        if (k % 2 == 0)
            return mb_fail(MB_STATUS_ARGUMENT, "size",
                           "size has the extent %lld; extents must be odd, for example %lld",
                           (long long)k, (long long)k + 1);
        count *= k;
    }
    if (count > MB_MEDIAN_MOST_ELEMENTS)
        return mb_fail(MB_STATUS_ARGUMENT, "size",
                       "the window has %lld elements; it may have %d at most: give smaller extents",
                       (long long)count, MB_MEDIAN_MOST_ELEMENTS);
    return MB_STATUS_OK;
}

mb_status mb_median_part_check(const mb_vector *counted, const mb_shape *shape)
{
    if (counted->count == 0)
        return MB_STATUS_OK;
    MB_TRY(mb_check_whole("counted", counted));
    if (counted->count != 2 * shape->rank)
        return mb_fail(
            MB_STATUS_ARGUMENT, "counted",
            "counted has %lld numbers; give the first and the last of each of the %d axes",
            (long long)counted->count, shape->rank);
    return MB_STATUS_OK;
}

mb_vector mb_median_part_piece(const mb_vector *counted, const mb_shape *shape, int axis,
                               const mb_op_piece *piece, double *room)
{
    mb_median_part part = mb_median_part_of(counted, shape);
    const int cut = axis + 3 - shape->rank;
    const mb_rows rows = piece->rows;
    part.first[cut] = part.first[cut] > rows.first ? part.first[cut] : rows.first;
    part.end[cut] = part.end[cut] < rows.end ? part.end[cut] : rows.end;
    part.first[cut] -= piece->input.first;
    part.end[cut] -= piece->input.first;
    for (int i = 0; i < shape->rank; i++) {
        const int from = i + 3 - shape->rank;
        room[2 * i] = (double)part.first[from] + 1;
        room[2 * i + 1] = (double)part.end[from];
    }
    return (mb_vector){room, 2 * shape->rank};
}

/* ---- the steps of a window ---- */

enum {
    NOTHING,
    EXCHANGE, /* row a gets the lesser keys of a and b, row b the greater */
    LESSER,   /* row a gets them */
    GREATER,  /* row b gets them */
    COPY,     /* row a: row b from column `shift` on */
    BOTH      /* row a: the lesser of a and the greater of b and c, c from column `shift` on */
};

struct mb_median_step {
    uint8_t kind, shift;
    uint16_t a, b, c;
};

typedef struct builder {
    mb_median_step *steps; /* NULL: they are only counted */
    int count, rows;
    uint16_t *room; /* for the lists of merges */
} builder;

/* Sorted rows; more than enough for 31 columns of which a window has at most 1023 elements. */
#define MOST MB_MEDIAN_MOST_ELEMENTS
/* Lists of a merge and of the merges in it: fewer than 2 (n + 2 depth). */
#define ROOM (4 * MOST)
/* Columns, pairs, fours, eights, sixteens, and what is joined to them. */
#define MOST_ROWS (6 * MOST)

static void step(builder *b, int kind, int first, int second, int third, int shift)
{
    if (b->steps)
        b->steps[b->count] = (mb_median_step){(uint8_t)kind, (uint8_t)shift, (uint16_t)first,
                                              (uint16_t)second, (uint16_t)third};
    b->count++;
}

/* The odd-even merge of every stride-th of the sorted rows x and y; `out` gets the m + n rows in
** their order. */
static void merge(builder *b, const uint16_t *x, int m, const uint16_t *y, int n, int stride,
                  uint16_t *out)
{
    if (m == 0 || n == 0) {
        for (int i = 0; i < m + n; i++)
            out[i] = m ? x[i * stride] : y[i * stride];
        return;
    }
    if (m == 1 && n == 1) {
        step(b, EXCHANGE, *x, *y, 0, 0);
        out[0] = *x;
        out[1] = *y;
        return;
    }
    const int odd = (m + 1) / 2 + (n + 1) / 2, even = m / 2 + n / 2;
    uint16_t *v = b->room, *w = v + odd;
    b->room = w + even;
    merge(b, x, (m + 1) / 2, y, (n + 1) / 2, 2 * stride, v);
    merge(b, x + stride, m / 2, y + stride, n / 2, 2 * stride, w);
    b->room = v;
    int at = 0;
    out[at++] = v[0];
    for (int i = 0; i < even; i++) {
        if (i + 1 < odd)
            step(b, EXCHANGE, w[i], v[i + 1], 0, 0);
        out[at++] = w[i];
        if (i + 1 < odd)
            out[at++] = v[i + 1];
    }
    if (odd == even + 2)
        out[at] = v[odd - 1];
}

static void sort(builder *b, uint16_t *rows, int n)
{
    uint16_t sorted[MOST] = {0};
    if (n < 2)
        return;
    sort(b, rows, n / 2);
    sort(b, rows + n / 2, n - n / 2);
    merge(b, rows, n / 2, rows + n / 2, n - n / 2, 1, sorted);
    memcpy(rows, sorted, (size_t)n * sizeof *rows);
}

/* A copy of sorted rows from a column on. */
static void copy(builder *b, const uint16_t *rows, int n, int shift, uint16_t *out)
{
    for (int i = 0; i < n; i++) {
        out[i] = (uint16_t)b->rows++;
        step(b, COPY, out[i], rows[i], 0, shift);
    }
}

/* The row of rank r (from 1) of the sorted rows x and of the rows y from column `shift` on: the
** least, over i + j = r, of the greater of x's i-th and y's j-th. There are at least r rows x and
** fewer than r rows y. */
static int join(builder *b, const uint16_t *x, const uint16_t *y, int n, int shift, int r)
{
    const int to = b->rows++;
    step(b, COPY, to, x[r - 1], 0, 0);
    for (int j = 1; j <= n; j++)
        step(b, BOTH, to, x[r - j - 1], y[j - 1], shift);
    return to;
}

/* Lists of 1, 2, 4 ... sorted columns; then those of which the window consists, the widest first.
** Returns the row of the median. */
static int build(builder *b, const mb_median_window *w)
{
    const int n = w->k[0] * w->k[1], k = w->k[2];
    uint16_t lists[5][MOST] = {{0}}, all[2 * MOST] = {0}, other[MOST] = {0};
    int level = 0, shift, have;
    for (int i = 0; i < n; i++)
        lists[0][i] = (uint16_t)b->rows++;
    sort(b, lists[0], n);
    for (; 2 << level <= k; level++) {
        const int m = n << level;
        uint16_t kept[MOST] = {0};
        copy(b, lists[level], m, 1 << level, other);
        if (k >> level & 1)
            copy(b, lists[level], m, 0, kept);
        else
            memcpy(kept, lists[level], (size_t)m * sizeof *kept);
        merge(b, kept, m, other, m, 1, lists[level + 1]);
    }
    have = n << level;
    shift = 1 << level;
    memcpy(all, lists[level], (size_t)have * sizeof *all);
    while (--level > 0)
        if (k >> level & 1) {
            uint16_t merged[MOST] = {0};
            copy(b, lists[level], n << level, shift, other);
            merge(b, all, have, other, n << level, 1, merged);
            have += n << level;
            shift += 1 << level;
            memcpy(all, merged, (size_t)have * sizeof *all);
        }
    return k == 1 ? all[n / 2] : join(b, all, lists[0], n, shift, w->count / 2 + 1);
}

/* Leaves out, from the last step on, what nothing after it needs. Returns how many are left. */
static int prune(mb_median_step *steps, int count, int result)
{
    uint8_t needed[MOST_ROWS] = {0};
    int kept = 0;
    needed[result] = 1;
    for (int i = count - 1; i >= 0; i--) {
        mb_median_step *s = &steps[i];
        switch (s->kind) {
        case EXCHANGE:
            if (!needed[s->a] || !needed[s->b])
                s->kind = needed[s->a] ? LESSER : needed[s->b] ? GREATER : NOTHING;
            if (s->kind != NOTHING)
                needed[s->a] = needed[s->b] = 1;
            break;
        case COPY:
            if (needed[s->a])
                needed[s->b] = 1;
            else
                s->kind = NOTHING;
            needed[s->a] = 0;
            break;
        default: needed[s->b] = needed[s->c] = 1; break;
        }
    }
    for (int i = 0; i < count; i++)
        if (steps[i].kind != NOTHING)
            steps[kept++] = steps[i];
    return kept;
}

static builder counted(const mb_median_window *w)
{
    uint16_t room[ROOM];
    builder b = {.room = room};
    build(&b, w);
    b.room = NULL;
    return b;
}

/* Shifted reads go on into the next row, so there is one more. */
uint64_t mb_median_rows_bytes(const mb_median_window *w)
{
    return (uint64_t)(counted(w).rows + 1) * COLUMNS * sizeof(int32_t);
}

void mb_median_slots(const mb_median_window *w, mb_planner *planner)
{
    const mb_device_facts *facts = &planner->device->facts;
    const bool host = facts->compute_capability == 0;
    const uint64_t threads = (uint64_t)mb_median_threads(w, facts->threads);
    mb_planner_slot(planner, "steps",
                    host ? (uint64_t)counted(w).count * sizeof(mb_median_step) : 0, 0, 0);
    mb_planner_slot(planner, "rows", host ? mb_bytes_mul(mb_median_rows_bytes(w), threads) : 0, 0,
                    0);
}

int mb_median_threads(const mb_median_window *w, int threads)
{
    return w->n[0] * w->n[1] * w->n[2] * w->count < 65536 ? 1 : threads;
}

void mb_median_begin(mb_median_job *job, const mb_median_window *w, const mb_array *a, void *steps)
{
    uint16_t room[ROOM];
    builder b = {.steps = steps, .room = room};
    job->window = *w;
    job->a = a;
    job->result = build(&b, w);
    job->count = prune(steps, b.count, job->result);
    job->steps = steps;
}

/* ---- running them ---- */

static inline int32_t lesser(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static inline int32_t greater(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

#define EACH _Pragma("GCC ivdep") for (int i = 0; i < COLUMNS; i++)

MB_MULTIVERSION
static void run_steps(const mb_median_step *steps, int count, int32_t *rows)
{
    for (int s = 0; s < count; s++) {
        int32_t *a = rows + (int64_t)steps[s].a * COLUMNS,
                *b = rows + (int64_t)steps[s].b * COLUMNS;
        const int32_t *c = rows + (int64_t)steps[s].c * COLUMNS + steps[s].shift;
        switch (steps[s].kind) {
        case EXCHANGE:
            EACH
            {
                const int32_t low = lesser(a[i], b[i]), high = greater(a[i], b[i]);
                a[i] = low;
                b[i] = high;
            }
            break;
        case LESSER: EACH a[i] = lesser(a[i], b[i]); break;
        case GREATER: EACH b[i] = greater(a[i], b[i]); break;
        /* what comes from beyond the row, maybe from a itself, is in columns that are not used */
        case COPY: memmove(a, b + steps[s].shift, COLUMNS * sizeof *a); break;
        default: EACH a[i] = lesser(a[i], greater(b[i], c[i])); break;
        }
    }
}

#define KEYS(type, key)                                                                            \
    do {                                                                                           \
        const type *from = (const type *)a->data + at;                                             \
        for (int i = first; i < end; i++)                                                          \
            to[i] = key(from[x + i]);                                                              \
    } while (0)

/* Keys of columns x + first to x + end of the row that begins at `at`, which are in the array. */
MB_MULTIVERSION
static void load(const mb_array *a, int64_t at, int64_t x, int first, int end, int32_t *to)
{
    if (a->dtype == MB_U8)
        KEYS(uint8_t, );
    else if (a->dtype == MB_U16)
        KEYS(uint16_t, );
    else
        KEYS(int32_t, mb_median_key);
}

/* The keys of COLUMNS columns from x on. */
static void load_row(const mb_median_job *job, int64_t at, int64_t x, int32_t *to)
{
    const int64_t n = job->window.n[2];
    const int first = x < 0 ? (int)-x : 0, end = n - x < COLUMNS ? (int)(n - x) : COLUMNS;
    load(job->a, at, x, first, end, to);
    for (int i = 0; i < first; i++)
        load(job->a, at, mb_pad_source(job->window.mode, x + i, n) - i, i, i + 1, to);
    for (int i = end; i < COLUMNS; i++)
        load(job->a, at, mb_pad_source(job->window.mode, x + i, n) - i, i, i + 1, to);
}

const int32_t *mb_median_chunk(const mb_median_job *job, int64_t z, int64_t y, int64_t x)
{
    const mb_median_window *w = &job->window;
    int32_t *row = job->own;
    for (int i = 0; i < w->k[0]; i++) {
        const int64_t plane = mb_pad_source(w->mode, z + i - w->k[0] / 2, w->n[0]);
        for (int j = 0; j < w->k[1]; j++, row += COLUMNS) {
            const int64_t line = mb_pad_source(w->mode, y + j - w->k[1] / 2, w->n[1]);
            load_row(job, plane * mb_median_plane(job->a) + line * mb_median_row(job->a),
                     x - w->k[2] / 2, row);
        }
    }
    run_steps(job->steps, job->count, job->own);
    return job->own + (int64_t)job->result * COLUMNS;
}
