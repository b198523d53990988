/*
** total_variation on the host. A slice is a volume whose planes have one row each, so that there is
** one way through both. The image of step k is made plane after plane, and the field of step k one
** plane behind it. Rows are the unit of work, and the same code makes every row: results do not
** depend on the number of slices, planes or threads.
**
** Many slices: each thread takes slices of its own, with a state of its own, and LEVELS steps at a
** time in its cache: step k + 1 follows one plane (rof: two planes) behind step k. Few slices, or
** a volume: each thread has a range of planes, step after step; the field of its last plane waits
** for the image of the next thread's first plane.
*/
#include "core/multiversion.h"
#include "ops/denoising/total_variation_host.h"
#include <omp.h>
#include <string.h>

#define LEVEL_BYTES (512 << 10) /* of cache for the rows of all levels */
#define MOST_LEVELS 16

/* An image with its state. */
typedef struct image {
    int64_t planes, rows, columns;
    const float *data; /* f and the result, with their strides */
    float *result;
    int64_t data_plane, data_row, result_plane, result_row;
    float *u, *p[3]; /* p along columns, planes and rows; the last NULL where there is one row */
    int64_t state_plane, state_row; /* of u and p */
    float *zero;                    /* a row of zeros */
    mb_tv_rates rates;
    bool rof;
} image;

/* ---- rows ---- */

static inline float bounded(float value, float least)
{
    return value < least ? least : value; /* NaN stays */
}

/* The neighbors of a row's field: its own, of the row above and of the plane before. */
typedef struct field_rows {
    const float *x, *y, *above, *z, *before;
} field_rows;

static inline void image_at(int64_t x, float left, const float *f, float *u, const field_rows *p,
                            const mb_tv_rates *r, float *ahead)
{
    const float div = (p->x[x] - left) + (p->y[x] - p->above[x]) + (p->z[x] - p->before[x]);
    const float old = u[x];
    const float made = bounded(old + (r->data * (f[x] - old) + r->field * div), r->least);
    u[x] = made;
    ahead[x] = 2 * made - old;
}

MB_MULTIVERSION static void image_row(int64_t n, const float *restrict f, float *restrict u,
                                      const field_rows *given, const mb_tv_rates *rates,
                                      float *restrict ahead)
{
    const field_rows p = *given;
    const mb_tv_rates r = *rates;
    image_at(0, 0, f, u, &p, &r, ahead);
    for (int64_t x = 1; x < n; x++)
        image_at(x, p.x[x - 1], f, u, &p, &r, ahead);
}

/* Into the unit ball. `b` is the row, below and after are the next row's and plane's. */
static inline void dual_at(float gx, float gy, float gz, float step, float *x, float *y, float *z)
{
    const float vx = *x + step * gx, vy = *y + step * gy, vz = *z + step * gz;
    const float square = vx * vx + vy * vy + vz * vz;
    const float scale = square > 1 ? 1 / sqrtf(square) : 1;
    *x = vx * scale;
    *y = vy * scale;
    *z = vz * scale;
}

MB_MULTIVERSION static void dual_row(int64_t n, const float *b, const float *below,
                                     const float *after, float *restrict px, float *restrict py,
                                     float *restrict pz, float step)
{
    for (int64_t x = 0; x < n - 1; x++) {
        const float c = b[x];
        dual_at(b[x + 1] - c, below[x] - c, after[x] - c, step, px + x, py + x, pz + x);
    }
    const float c = b[n - 1];
    dual_at(0, below[n - 1] - c, after[n - 1] - c, step, px + n - 1, py + n - 1, pz + n - 1);
}

MB_MULTIVERSION static void dual_row_flat(int64_t n, const float *b, const float *after,
                                          float *restrict px, float *restrict pz, float step)
{
    for (int64_t x = 0; x < n - 1; x++) {
        const float c = b[x];
        float none = 0;
        dual_at(b[x + 1] - c, 0, after[x] - c, step, px + x, &none, pz + x);
    }
    float none = 0;
    dual_at(0, 0, after[n - 1] - b[n - 1], step, px + n - 1, &none, pz + n - 1);
}

/* The smaller of two differences, 0 where their signs differ. */
static inline float smaller(float a, float b)
{
    /* No min: in a loop it is a branch for the compiler. */
    const float one = fabsf(a), two = fabsf(b), least = 0.5f * (one + two - fabsf(one - two));
    return (copysignf(0.5f, a) + copysignf(0.5f, b)) * least;
}

typedef struct image_rows {
    const float *above, *here, *below, *before, *after;
} image_rows;

static inline float flux(float forward, float across, float other, float epsilon)
{
    return forward / sqrtf(forward * forward + across * across + other * other + epsilon);
}

static inline void flux_at(const image_rows *u, int64_t left, int64_t x, int64_t right,
                           float epsilon, float *restrict px, float *restrict py,
                           float *restrict pz, bool flat)
{
    const float c = u->here[x], gx = u->here[right] - c, gz = u->after[x] - c;
    const float mx = smaller(gx, c - u->here[left]), mz = smaller(gz, c - u->before[x]);
    const float gy = flat ? 0 : u->below[x] - c, my = flat ? 0 : smaller(gy, c - u->above[x]);
    px[x] = flux(gx, my, mz, epsilon);
    pz[x] = flux(gz, mx, my, epsilon);
    if (!flat) /* py is NULL where flat */
        /* cppcheck-suppress nullPointer */
        py[x] = flux(gy, mx, mz, epsilon);
}

MB_MULTIVERSION static void flux_row(int64_t n, const image_rows *given, float epsilon,
                                     float *restrict px, float *restrict py, float *restrict pz)
{
    const image_rows u = *given;
    flux_at(&u, 0, 0, n > 1, epsilon, px, py, pz, false);
#pragma omp simd
    for (int64_t x = 1; x < n - 1; x++)
        flux_at(&u, x - 1, x, x + 1, epsilon, px, py, pz, false);
    if (n > 1)
        flux_at(&u, n - 2, n - 1, n - 1, epsilon, px, py, pz, false);
}

MB_MULTIVERSION static void flux_row_flat(int64_t n, const image_rows *given, float epsilon,
                                          float *restrict px, float *restrict pz)
{
    const image_rows u = *given;
    flux_at(&u, 0, 0, n > 1, epsilon, px, NULL, pz, true);
#pragma omp simd
    for (int64_t x = 1; x < n - 1; x++)
        flux_at(&u, x - 1, x, x + 1, epsilon, px, NULL, pz, true);
    if (n > 1)
        flux_at(&u, n - 2, n - 1, n - 1, epsilon, px, NULL, pz, true);
}

/* ---- rows of an image ---- */

static int64_t at(const image *m, int64_t z, int64_t y)
{
    return z * m->state_plane + y * m->state_row;
}

/* The image of a row. Step 0 is the data, the last one is the result. `ahead`: a row for 2 u' - u. */
static void make_image(const image *m, int64_t z, int64_t y, int64_t k, int64_t last, float *ahead)
{
    const int64_t n = m->columns, here = at(m, z, y);
    const float *f = m->data + z * m->data_plane + y * m->data_row;
    if (k == 0) {
        memcpy(m->u + here, f, (size_t)n * sizeof *f);
        memcpy(ahead, f, (size_t)n * sizeof *f);
        for (int i = 0; i < 3; i++)
            if (m->p[i])
                memset(m->p[i] + here, 0, (size_t)n * sizeof *f);
        return;
    }
    const float *py = m->p[2];
    const field_rows p = {m->p[0] + here, py ? py + here : m->zero,
                          py && y > 0 ? py + here - m->state_row : m->zero, m->p[1] + here,
                          z > 0 ? m->p[1] + at(m, z - 1, y) : m->zero};
    image_row(n, f, m->u + here, &p, &m->rates, ahead);
    if (k == last)
        memcpy(m->result + z * m->result_plane + y * m->result_row, m->u + here,
               (size_t)n * sizeof *f);
}

/* The field of a row. b, after: 2 u' - u of its plane and the next one (its own at the end). */
static void make_dual(const image *m, int64_t z, int64_t y, const float *b, const float *after)
{
    const int64_t n = m->columns, here = at(m, z, y);
    const float *row = b + y * n, *below = y + 1 < m->rows ? row + n : row;
    if (m->p[2])
        dual_row(n, row, below, after + y * n, m->p[0] + here, m->p[2] + here, m->p[1] + here,
                 m->rates.step);
    else
        dual_row_flat(n, row, after, m->p[0] + here, m->p[1] + here, m->rates.step);
}

static void make_flux(const image *m, int64_t z, int64_t y)
{
    const int64_t n = m->columns, here = at(m, z, y);
    const float *u = m->u + here;
    const image_rows rows = {
        y > 0 ? u - m->state_row : u, u, y + 1 < m->rows ? u + m->state_row : u,
        z > 0 ? m->u + at(m, z - 1, y) : u, z + 1 < m->planes ? m->u + at(m, z + 1, y) : u};
    if (m->p[2])
        flux_row(n, &rows, m->rates.step, m->p[0] + here, m->p[2] + here, m->p[1] + here);
    else
        flux_row_flat(n, &rows, m->rates.step, m->p[0] + here, m->p[1] + here);
}

/* The image of plane z, and with it the field of the plane before. ahead[i]: 2 u' - u of planes. */
static void advance(const image *m, int64_t z, int64_t k, int64_t last, float *const ahead[2])
{
    const float *after = z < m->planes ? ahead[0] : ahead[1];
    for (int64_t y = 0; y < m->rows; y++) {
        if (z < m->planes)
            make_image(m, z, y, k, last, ahead[0] + y * m->columns);
        if (z > 0 && k < last && m->rof)
            make_flux(m, z - 1, y);
        else if (z > 0 && k < last && ahead[1])
            make_dual(m, z - 1, y, ahead[1], after);
    }
}

/* ---- one thread for an image ---- */

static int levels_of(int64_t columns)
{
    const int64_t levels = LEVEL_BYTES / (40 * (columns > 0 ? columns : 1));
    return (int)(levels < 1 ? 1 : levels > MOST_LEVELS ? MOST_LEVELS : levels);
}

/* Slices: planes of one row. `rings` has two rows for each level. */
static void run_alone(const image *m, int64_t last, float *rings)
{
    const int most = levels_of(m->columns);
    const int64_t lag = m->rof ? 2 : 1, n = m->columns;
    for (int64_t first = 0; first <= last; first += most) {
        const int64_t left = last + 1 - first, levels = left < most ? left : most;
        for (int64_t s = 0; s <= m->planes + lag * (levels - 1) && !mb_cancelled(); s++)
            for (int64_t l = 0; l < levels; l++) {
                const int64_t z = s - lag * l;
                float *ring = rings + 2 * l * n;
                float *const ahead[2] = {ring + (z & 1) * n, ring + (~z & 1) * n};
                if (z >= 0 && z <= m->planes)
                    advance(m, z, first + l, last, ahead);
            }
    }
}

/* ---- all threads for an image ---- */

/* A thread's planes: [first, end). Its buffers: 2 u' - u of its first plane, which the thread before
** needs, and of two more. */
typedef struct range {
    int64_t first, end;
    float *ahead[3];
} range;

static float *ahead_of(const range *r, int64_t z)
{
    return r->ahead[z == r->first ? 0 : 1 + (z & 1)];
}

static void images_of(const image *m, const range *r, int64_t k, int64_t last)
{
    for (int64_t z = r->first; z < r->end && !mb_cancelled(); z++) {
        float *const ahead[2] = {ahead_of(r, z),
                                 z > r->first && !m->rof ? ahead_of(r, z - 1) : NULL};
        if (m->rof || z == r->first) {
            for (int64_t y = 0; y < m->rows; y++)
                make_image(m, z, y, k, last, ahead[0] + y * m->columns);
        } else {
            advance(m, z, k, last, ahead);
        }
    }
}

static void fields_of(const image *m, const range *r, const range *next)
{
    if (m->rof) {
        for (int64_t z = r->first; z < r->end && !mb_cancelled(); z++)
            for (int64_t y = 0; y < m->rows; y++)
                make_flux(m, z, y);
        return;
    }
    const float *b = ahead_of(r, r->end - 1);
    const float *after = r->end < m->planes ? ahead_of(next, r->end) : b;
    for (int64_t y = 0; y < m->rows; y++)
        make_dual(m, r->end - 1, y, b, after);
}

static range range_of(const image *m, int thread, int threads, float *rings)
{
    const int64_t plane = m->rows * m->columns;
    range r = {m->planes * thread / threads, m->planes * (thread + 1) / threads, {NULL}};
    for (int i = 0; i < 3; i++)
        r.ahead[i] = rings + (3 * thread + i) * plane;
    return r;
}

/* Steps first to end - 1, of which `last` leaves no field. */
static void run_together(const image *m, int64_t first, int64_t end, int64_t last, float *rings,
                         int threads)
{
#pragma omp parallel num_threads(threads)
    {
        const int team = omp_get_num_threads(), thread = omp_get_thread_num();
        const range own = range_of(m, thread, team, rings);
        const range next = range_of(m, thread + 1, team, rings);
        for (int64_t k = first; k < end; k++) {
            images_of(m, &own, k, last);
#pragma omp barrier
            if (k < last)
                fields_of(m, &own, &next);
#pragma omp barrier
        }
    }
}

/* ---- the whole call ---- */

/* How the state is laid out: `states` of so many floats, then rings, then a row of zeros. */
typedef struct layout {
    bool apart; /* one thread for an image */
    int threads;
    int64_t planes, rows, fields; /* slices: planes of one row */
    int64_t state, ring;          /* floats for each thread */
} layout;

static layout layout_of(const mb_tv_extents *n, int threads)
{
    layout l = {.planes = n->planes > 1 ? n->planes : n->rows,
                .rows = n->planes > 1 ? n->rows : 1,
                .fields = n->planes > 1 ? 3 : 2};
    const int64_t plane = l.rows * n->columns;
    l.threads = n->images * l.planes * plane < 16384 ? 1 : threads;
    l.apart = n->planes == 1 && n->images >= l.threads;
    if (!l.apart && l.threads > l.planes)
        l.threads = (int)(l.planes > 0 ? l.planes : 1);
    l.state = (1 + l.fields) * l.planes * plane;
    l.ring = l.apart ? 2 * levels_of(n->columns) * n->columns : 3 * plane;
    return l;
}

uint64_t mb_tv_host_bytes(const mb_tv_extents *n, int threads)
{
    const layout l = layout_of(n, threads);
    const uint64_t states = l.apart ? (uint64_t)l.threads : 1;
    return mb_bytes_mul(
        mb_bytes_add(mb_bytes_add(mb_bytes_mul((uint64_t)l.state, states),
                                  mb_bytes_mul((uint64_t)l.ring, (uint64_t)l.threads)),
                     (uint64_t)n->columns),
        sizeof(float));
}

static image image_of(const mb_op_call *call, const layout *l, int64_t columns)
{
    const mb_array *a = call->arrays[MB_TOTAL_VARIATION_A];
    const mb_array *result = call->arrays[MB_TOTAL_VARIATION_RESULT];
    const mb_total_variation_params *p = call->params;
    image m = {.planes = l->planes,
               .rows = l->rows,
               .columns = columns,
               .data = a->data,
               .result = result->data,
               .rof = p->method == MB_TV_ROF};
    mb_tv_strides(a, &m.data_plane, &m.data_row);
    mb_tv_strides(result, &m.result_plane, &m.result_row);
    if (l->fields == 2) {
        m.data_plane = m.data_row;
        m.result_plane = m.result_row;
    }
    return m;
}

static void place_state(image *m, const layout *l, float *state)
{
    const int64_t count = l->planes * l->rows * m->columns;
    m->state_plane = l->rows * m->columns;
    m->state_row = m->columns;
    m->u = state;
    for (int i = 0; i < l->fields; i++)
        m->p[i] = state + (i + 1) * count;
}

/* lambda 0: the data. */
static void copy_rows(const mb_array *a, const mb_array *result, const mb_tv_extents *n,
                      float least)
{
    int64_t plane = 0, row = 0, to_plane = 0, to_row = 0;
    mb_tv_strides(a, &plane, &row);
    mb_tv_strides(result, &to_plane, &to_row);
    for (int64_t z = 0; z < n->images * n->planes; z++)
        for (int64_t y = 0; y < n->rows && !mb_cancelled(); y++)
            for (int64_t x = 0; x < n->columns; x++)
                ((float *)result->data)[z * to_plane + y * to_row + x] =
                    bounded(((const float *)a->data)[z * plane + y * row + x], least);
}

static image nth_image(const mb_op_call *call, const layout *l, const mb_tv_extents *n, int64_t i)
{
    image m = image_of(call, l, n->columns);
    int64_t from = 0, to = 0, row = 0;
    mb_tv_strides(call->arrays[MB_TOTAL_VARIATION_A], &from, &row);
    mb_tv_strides(call->arrays[MB_TOTAL_VARIATION_RESULT], &to, &row);
    m.data += i * from;
    m.result += i * to;
    m.rates = mb_tv_rates_of(call->params);
    return m;
}

mb_status mb_tv_host_run(const mb_op_call *call, const mb_tv_extents *n)
{
    const mb_total_variation_params *p = call->params;
    const layout l = layout_of(n, call->device->facts.threads);
    if (n->images * n->planes * n->rows * n->columns == 0)
        return MB_STATUS_OK;
    if (!(p->lambda > 0)) {
        copy_rows(call->arrays[MB_TOTAL_VARIATION_A], call->arrays[MB_TOTAL_VARIATION_RESULT], n,
                  p->nonnegative ? 0 : -INFINITY);
        return MB_STATUS_OK;
    }
    float *state = call->slots[MB_TOTAL_VARIATION_STATE];
    float *rings = state + (l.apart ? l.threads : 1) * l.state, *zero = rings + l.threads * l.ring;
    memset(zero, 0, (size_t)n->columns * sizeof *zero);
#pragma omp parallel for schedule(dynamic) num_threads(l.threads) if (l.apart)
    for (int64_t i = 0; i < (l.apart ? n->images : 0); i++) {
        image m = nth_image(call, &l, n, i);
        m.zero = zero;
        place_state(&m, &l, state + omp_get_thread_num() * l.state);
        run_alone(&m, p->iterations, rings + omp_get_thread_num() * l.ring);
    }
    for (int64_t i = 0; i < (l.apart ? 0 : n->images); i++) {
        image m = nth_image(call, &l, n, i);
        m.zero = zero;
        place_state(&m, &l, state);
        run_together(&m, 0, p->iterations + 1, p->iterations, rings, l.threads);
    }
    return MB_STATUS_OK;
}

/* ---- a sweep ---- */

static layout sweep_layout(const mb_tv_extents *n, int threads)
{
    const int64_t plane = n->rows * n->columns;
    layout l = {.planes = n->planes, .rows = n->rows, .fields = 3, .ring = 3 * plane};
    l.threads = n->planes * plane < 16384 ? 1 : threads;
    if (l.threads > n->planes)
        l.threads = (int)(n->planes > 0 ? n->planes : 1);
    return l;
}

uint64_t mb_tv_host_sweep_bytes(const mb_tv_extents *n, int threads)
{
    const layout l = sweep_layout(n, threads);
    return mb_bytes_mul(
        mb_bytes_add(mb_bytes_mul((uint64_t)l.ring, (uint64_t)l.threads), (uint64_t)n->columns),
        sizeof(float));
}

static void copy_state(const mb_array *from, const mb_array *to)
{
    const size_t bytes = (size_t)to->shape.dims[2] * sizeof(float);
    for (int64_t z = 0; z < to->shape.dims[0]; z++)
        for (int64_t y = 0; y < to->shape.dims[1]; y++)
            memcpy((float *)to->data + z * to->strides[0] + y * to->strides[1],
                   (const float *)from->data + z * from->strides[0] + y * from->strides[1], bytes);
}

/* The components of the field in a state are those along x, y and z. */
mb_status mb_tv_host_sweep(const mb_op_call *call, const mb_tv_extents *n,
                           const mb_total_variation_params *p, int64_t steps)
{
    const layout l = sweep_layout(n, call->device->facts.threads);
    const mb_array *a = call->arrays[MB_TV_SWEEP_A], *before = call->arrays[MB_TV_SWEEP_STATE];
    const mb_array *made = call->arrays[MB_TV_SWEEP_RESULT];
    const int64_t part = n->rows * made->strides[1];
    float *state = made->data;
    float *rings = call->slots[MB_TV_SWEEP_WORK], *zero = rings + l.threads * l.ring;
    if (n->planes * n->rows * n->columns == 0)
        return MB_STATUS_OK;
    if (before && before->data != state)
        copy_state(before, made);
    memset(zero, 0, (size_t)n->columns * sizeof *zero);
    image m = {.planes = n->planes,
               .rows = n->rows,
               .columns = n->columns,
               .data = a->data,
               .u = state,
               .p = {state + part, state + 3 * part, state + 2 * part},
               .state_plane = made->strides[0],
               .state_row = made->strides[1],
               .zero = zero,
               .rates = mb_tv_rates_of(p)};
    mb_tv_strides(a, &m.data_plane, &m.data_row);
    const int64_t first = before ? 1 : 0;
    run_together(&m, first, first + steps, INT64_MAX, rings, l.threads);
    return MB_STATUS_OK;
}
