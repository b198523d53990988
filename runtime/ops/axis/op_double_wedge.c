/*
** double_wedge: the metric by which Vo's method finds the rotation axis, for many trial centers at
** once (op_double_wedge.h has the formulas). A thread of the host takes a row of the spectrum and
** walks over the shifts; the columns of the spectrum are the vector.
*/
#include "ops/axis/op_double_wedge.h"
#include "core/multiversion.h"
#include "ops/each_item.h"
#include "ops/op_args.h"
#include <float.h>
#include <string.h>

#define PARAMS mb_double_wedge_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("sino", MB_BIT(MB_F32), 2, 3,
                "sinograms (angle, column) or (row, angle, column) over half a turn, both ends "
                "included"),
    MB_VECTOR(centers, 0, 1 << 24, "px", "trial columns of the axis, 0-based, ascending"),
    MB_FLOAT(ratio, FLT_MIN, 1e6, 0.5, NULL, "width of the object, a part of that of the sinogram"),
    MB_INT(drop, 0, 1 << 24, 20, "rows",
           "rows of the spectrum on either side of frequency 0 that do not count; at most a tenth "
           "of the angles"),
    MB_INT(column_drop, 1, 1 << 24, 1, "columns",
           "columns of the spectrum on either side of frequency 0 that do not count"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 1, 2, "the metric (center) or (row, center)")};

static const mb_op_split split[] = {
    MB_SPLIT_AXIS(0, .when = "there are three axes", .adapt = mb_stack_adapt), MB_SPLIT_END};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 13, 22}}, params = {centers = {0, 3.5, 9, 10, 10.5, 11, 17.5, 21}}}",
    "{inputs = {{'f32', 40, 31}}, params = {centers = {12.25, 14.75, 15, 15.25, 15.3, 17}, ratio = "
    "0.8, drop = 3, column_drop = 2}}",
    "{inputs = {{'f32', 2, 70, 300}}, params = {centers = {130.1, 149.5, 160.25, 160.25}}}"};

static mb_status check_centers(const mb_vector *centers, int64_t width)
{
    if (centers->count < 1 || centers->count > MB_DOUBLE_WEDGE_CENTERS)
        return mb_fail(MB_STATUS_ARGUMENT, "centers",
                       "%lld centers are given; a call tries 1 to %d of them",
                       (long long)centers->count, MB_DOUBLE_WEDGE_CENTERS);
    for (int64_t i = 0; i < centers->count; i++) {
        const double center = centers->values[i];
        if (!(center <= (double)(width - 1)))
            return mb_fail(MB_STATUS_ARGUMENT, "centers",
                           "element %lld of centers is %g; the sinogram has columns 0 to %lld",
                           (long long)i + 1, center, (long long)width - 1);
        if (i > 0 && center < centers->values[i - 1])
            return mb_fail(MB_STATUS_ARGUMENT, "centers",
                           "element %lld of centers is %g, less than the one before it; sort them",
                           (long long)i + 1, center);
    }
    return MB_STATUS_OK;
}

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_double_wedge_params *p = params;
    const mb_shape *shape = &arrays[MB_DOUBLE_WEDGE_SINO].shape;
    const mb_double_wedge_size size = mb_double_wedge_size_of(shape);
    mb_spec *result = &arrays[MB_DOUBLE_WEDGE_RESULT];
    if (size.height < 1 || size.width < 1 || size.height > 1 << 24 || size.width > 1 << 24)
        return mb_fail(MB_STATUS_SHAPE, "sino",
                       "a sinogram of %lld angles and %lld columns has no spectrum; give 1 to 2^24 "
                       "of each",
                       (long long)size.height, (long long)size.width);
    MB_TRY(check_centers(&p->centers, size.width));
    *result = (mb_spec){true, MB_F32, {1, {p->centers.count}}};
    if (shape->rank == 3)
        result->shape = (mb_shape){2, {size.rows, p->centers.count}};
    return MB_STATUS_OK;
}

static void plan_host(const mb_double_wedge_params *p, const mb_double_wedge_size *size,
                      mb_planner *planner)
{
    const uint64_t threads = (uint64_t)planner->device->facts.threads;
    const uint64_t column = (uint64_t)mb_double_wedge_column_pitch(size->height) * sizeof(float);
    const uint64_t row = (uint64_t)mb_double_wedge_row_pitch(size->width) * sizeof(float);
    const uint64_t width = (uint64_t)size->width * 2 * sizeof(float);
    mb_planner_slot(planner, "columns", mb_bytes_mul(threads * MB_DOUBLE_WEDGE_STRIP, column), 0,
                    0);
    mb_planner_slot(planner, "spectrum", mb_bytes_mul((uint64_t)size->height + 1, width), 0, 1);
    mb_planner_slot(planner, "rows", mb_bytes_mul(threads * 3, row), 1, 1);
    mb_planner_slot(planner, "sums", 0, 1, 1);
    mb_planner_slot(planner, "other sums", 0, 1, 1);
    mb_planner_slot(planner, "turns", width, 0, 1);
    mb_planner_slot(planner, "trials", (uint64_t)p->centers.count * 2 * sizeof(int64_t), 0, 1);
    mb_planner_slot(
        planner, "parts",
        mb_bytes_mul((uint64_t)p->centers.count, MB_DOUBLE_WEDGE_GROUPS * sizeof(double)), 0, 1);
}

static void plan_cuda(const mb_double_wedge_params *p, const mb_double_wedge_size *size,
                      mb_planner *planner)
{
    const uint64_t half = (uint64_t)size->height + 1;
    const uint64_t spectrum = mb_bytes_mul(half * 2 * sizeof(float), (uint64_t)size->width);
    const uint64_t other = mb_double_wedge_is_between(&p->centers, size->width) ? spectrum : 0;
    mb_planner_slot(planner, "columns", spectrum, 0, 0);
    mb_planner_slot(planner, "spectrum", spectrum, 0, 1);
    mb_planner_slot(planner, "between columns", other, 1, 1);
    mb_planner_slot(planner, "sums", spectrum, 1, 1);
    mb_planner_slot(planner, "other sums", other, 1, 1);
    mb_planner_slot(planner, "turns", 0, 1, 1);
    mb_planner_slot(planner, "trials", (uint64_t)p->centers.count * 2 * sizeof(int32_t), 1, 1);
    mb_planner_slot(planner, "parts",
                    mb_bytes_mul((uint64_t)mb_double_wedge_blocks(size),
                                 (uint64_t)p->centers.count * sizeof(float)),
                    1, 1);
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_double_wedge_params *p = params;
    const mb_double_wedge_size size = mb_double_wedge_size_of(&arrays[MB_DOUBLE_WEDGE_SINO].shape);
    const bool host = planner->device->facts.compute_capability == 0;
    const int64_t padded = 2 * size.height;
    mb_fft_desc columns = mb_fft_describe(MB_FFT_R2C, 1, &padded, host ? 1 : size.width, true);
    mb_fft_desc rows =
        mb_fft_describe(MB_FFT_C2C_FORWARD, 1, &size.width, host ? 1 : size.height + 1, host);
    int work;
    (host ? plan_host : plan_cuda)(p, &size, planner);
    if (host) {
        columns.in_distance = mb_double_wedge_column_pitch(size.height);
        columns.out_distance = columns.in_distance / 2;
        rows.in_distance = rows.out_distance = mb_double_wedge_row_pitch(size.width) / 2;
    }
    mb_planner_fft(planner, &columns, "columns work", 0, 0, &work);
    mb_planner_fft(planner, &rows, "rows work", 1, 1, &work);
}

/* ---- the host ---- */

#define LANES 16
#define BLOCK 256  /* columns of the spectrum that stay in the first-level cache */
#define RESTART 32 /* steps of the walk between exact phases */

typedef struct wave {
    float re[BLOCK], im[BLOCK];
} wave;

/* A block of columns of a row of the spectrum; see op_double_wedge.h. */
typedef struct tile {
    wave a, b;   /* A, B */
    wave ma, mb; /* those of the mirrored columns: the same, or between columns */
    wave p, m;   /* P, M: of the columns that are filled */
    wave mp, mm; /* those of the mirrored columns */
    wave turn, before, step;
    float weight[BLOCK];
    int64_t first, count; /* columns; the count is rounded up to LANES, with weights 0 */
    float g, h, sign;
} tile;

typedef struct job {
    const mb_op_call *call;
    const mb_double_wedge_params *p;
    mb_double_wedge_size size;
    mb_double_wedge_mask mask;
    const float *sino;
    int64_t row_stride;
    float *spectrum, *turns;
    int64_t *shifts, *opening; /* shifts of trials; the first trial of each class */
    int64_t classes;
    double *parts;
} job;

static mb_status transform_columns(const void *given, int64_t strip, int thread)
{
    const job *j = given;
    const int64_t height = j->size.height, width = j->size.width;
    const int64_t pitch = mb_double_wedge_column_pitch(height);
    const int64_t first = strip * MB_DOUBLE_WEDGE_STRIP;
    const int64_t count =
        width - first < MB_DOUBLE_WEDGE_STRIP ? width - first : MB_DOUBLE_WEDGE_STRIP;
    float *columns =
        (float *)j->call->slots[MB_DOUBLE_WEDGE_COLUMNS] + thread * MB_DOUBLE_WEDGE_STRIP * pitch;
    MB_TRY(mb_cancel_check());
    for (int64_t r = 0; r < height; r++)
        for (int64_t c = 0; c < count; c++)
            columns[c * pitch + r] = j->sino[r * j->row_stride + first + c];
    for (int64_t c = 0; c < count; c++) {
        memset(columns + c * pitch + height, 0, (size_t)(pitch - height) * sizeof(float));
        MB_TRY(mb_fft_exec(j->call->device, j->call->ffts[MB_DOUBLE_WEDGE_COLUMNS_FFT],
                           columns + c * pitch, columns + c * pitch,
                           j->call->slots[MB_DOUBLE_WEDGE_COLUMNS_WORK]));
    }
    for (int64_t q = 0; q <= height; q++)
        for (int64_t c = 0; c < count; c++)
            memcpy(j->spectrum + 2 * (q * width + first + c), columns + c * pitch + 2 * q, 8);
    return MB_STATUS_OK;
}

/* A row of the spectrum between columns. */
MB_MULTIVERSION
static void interpolate(const float *from, float *to, int64_t width, const float *taps)
{
    const int before = MB_DOUBLE_WEDGE_TAPS / 2 - 1;
    for (int64_t x = 0; x < width - 1; x++) {
        float re = 0, im = 0;
        if (x >= before && x + MB_DOUBLE_WEDGE_TAPS / 2 < width)
            for (int t = 0; t < MB_DOUBLE_WEDGE_TAPS; t++) {
                re += taps[t] * from[2 * (x + t - before)];
                im += taps[t] * from[2 * (x + t - before) + 1];
            }
        else
            for (int t = 0; t < MB_DOUBLE_WEDGE_TAPS; t++) {
                const int64_t at = mb_double_wedge_mirrored(x + t - before, width);
                re += taps[t] * from[2 * at];
                im += taps[t] * from[2 * at + 1];
            }
        to[2 * x] = re;
        to[2 * x + 1] = im;
    }
    to[2 * width - 2] = to[2 * width - 1] = 0;
}

/* A and B of a block from a row of U: (U(k) + conj(U(-k))) / 2, (U(k) - conj(U(-k))) / 2i. */
static void take_sums(const tile *t, const float *sums, int64_t width, wave *a, wave *b)
{
    for (int64_t i = 0; i < t->count; i++) {
        const int64_t k = t->first + i < width ? t->first + i : 0, back = k > 0 ? width - k : 0;
        const float re = sums[2 * k], im = sums[2 * k + 1];
        const float back_re = sums[2 * back], back_im = sums[2 * back + 1];
        a->re[i] = 0.5F * (re + back_re);
        a->im[i] = 0.5F * (im - back_im);
        b->re[i] = 0.5F * (im + back_im);
        b->im[i] = 0.5F * (back_re - re);
    }
}

/* p + i m gains the column value times the turn. */
MB_MULTIVERSION
static void add_column(wave *p, wave *m, const wave *turn, const float *value, int64_t count)
{
    const float re = value[0], im = value[1];
    for (int64_t i = 0; i < count; i++) {
        p->re[i] += re * turn->re[i];
        p->im[i] += re * turn->im[i];
        m->re[i] += im * turn->re[i];
        m->im[i] += im * turn->im[i];
    }
}

MB_MULTIVERSION
static void take_turn(wave *turn, wave *before, const wave *step, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const float re = turn->re[i], im = turn->im[i];
        before->re[i] = re;
        before->im[i] = im;
        turn->re[i] = re * step->re[i] - im * step->im[i];
        turn->im[i] = re * step->im[i] + im * step->re[i];
    }
}

/* The sum of weight (|E(q)| + |E(-q)|) over a block; v is w^(n - 1). */
MB_MULTIVERSION
static double evaluate(const tile *t, const wave *v, const wave *mp, const wave *mm)
{
    float lanes[LANES] = {0};
    const float g = t->g, h = t->h, sign = t->sign;
    double sum = 0;
    for (int64_t first = 0; first < t->count; first += LANES)
        for (int64_t l = 0; l < LANES; l++) {
            const int64_t i = first + l;
            const float xr = t->ma.re[i] - mp->re[i], xi = t->ma.im[i] - mp->im[i];
            const float yr = t->mb.re[i] - mm->re[i], yi = t->mb.im[i] - mm->im[i];
            const float vr = v->re[i], vi = v->im[i];
            const float pr = t->p.re[i], pi = t->p.im[i], mr = t->m.re[i], mi = t->m.im[i];
            const float z1r = t->a.re[i] + sign * (vr * xr + vi * xi + g * pr + h * mr);
            const float z1i = t->a.im[i] + sign * (vi * xr - vr * xi + g * pi + h * mi);
            const float z2r = t->b.re[i] + sign * (vr * yr + vi * yi + h * pr - g * mr);
            const float z2i = t->b.im[i] + sign * (vi * yr - vr * yi + h * pi - g * mi);
            const float ar = z1r - z2i, ai = z1i + z2r, br = z1r + z2i, bi = z1i - z2r;
            lanes[l] += t->weight[i] * (sqrtf(ar * ar + ai * ai) + sqrtf(br * br + bi * bi));
        }
    for (int64_t l = 0; l < LANES; l++)
        sum += lanes[l];
    return sum;
}

/* The walk to one side: trials of a class in the order of their distance from shift 0. */
typedef struct walk {
    bool down;             /* to negative shifts */
    bool between;          /* the class lies between columns */
    const float *row;      /* C */
    const float *mirrored; /* C of the mirrored columns: the same, or between columns */
    int64_t fraction;      /* of the class */
} walk;

/* The turns at step `at`: w^at upwards, w^-(at + 1) downwards, and those of the step before. */
static void restart(const job *j, tile *t, bool down, int64_t at)
{
    const int64_t width = j->size.width;
    const float way = down ? -1.0F : 1.0F;
    for (int64_t i = 0; i < t->count; i++) {
        const int64_t k = (t->first + i) % width;
        const float *turn = j->turns + 2 * (k * ((at + (down ? 1 : 0)) % width) % width);
        const float *step = j->turns + 2 * k;
        t->turn.re[i] = turn[0];
        t->turn.im[i] = way * turn[1];
        t->step.re[i] = step[0];
        t->step.im[i] = way * step[1];
        t->before.re[i] = t->turn.re[i] * t->step.re[i] + t->turn.im[i] * t->step.im[i];
        t->before.im[i] = t->turn.im[i] * t->step.re[i] - t->turn.re[i] * t->step.im[i];
    }
}

/* The next trial of the class from trial i on in the direction of the walk; -1: none. */
static int64_t next_trial(const job *j, const walk *w, int64_t i)
{
    for (; i >= 0 && i < j->p->centers.count; i += w->down ? -1 : 1)
        if (mb_double_wedge_fraction(j->shifts[i]) == w->fraction && (j->shifts[i] < 0) == w->down)
            return i;
    return -1;
}

/* Evaluates the trials of step `at`; returns the one after them. */
static int64_t take_trials(const job *j, const tile *t, const walk *w, int64_t trial, int64_t at,
                           double *sums)
{
    const int64_t whole = w->down ? -at - 1 : at;
    while (trial >= 0 && mb_double_wedge_whole(j->shifts[trial]) == whole) {
        sums[trial] += evaluate(t, w->down ? &t->turn : &t->before, w->between ? &t->mp : &t->p,
                                w->between ? &t->mm : &t->m);
        trial = next_trial(j, w, trial + (w->down ? -1 : 1));
    }
    return trial;
}

/* Columns fill up from the left end, or downwards from the right end. */
static void walk_over(const job *j, tile *t, const walk *w, double *sums)
{
    const int64_t width = j->size.width;
    int64_t trial = next_trial(j, w, w->down ? j->p->centers.count - 1 : 0);
    for (wave *sum = &t->p; sum <= &t->mm; sum++)
        memset(sum, 0, sizeof *sum);
    for (int64_t at = 0; trial >= 0 && at < width; at++) {
        const int64_t column = w->down ? width - 1 - at : at;
        if (at % RESTART == 0)
            restart(j, t, w->down, at);
        if (!w->down && !w->between)
            trial = take_trials(j, t, w, trial, at, sums);
        add_column(&t->p, &t->m, &t->turn, w->row + 2 * column, t->count);
        if (!w->down && w->between)
            trial = take_trials(j, t, w, trial, at, sums);
        if (w->between)
            add_column(&t->mp, &t->mm, &t->turn, w->mirrored + 2 * column, t->count);
        take_turn(&t->turn, &t->before, &t->step, t->count);
        if (w->down)
            trial = take_trials(j, t, w, trial, at, sums);
    }
}

/* The blocks of columns of row q for a class. u, mirrored_u: rows of U. */
static void each_tile(const job *j, int64_t q, walk *w, const float *u, const float *mirrored_u,
                      double *sums)
{
    const double pi = 3.14159265358979323846;
    const int64_t width = j->size.width, height = j->size.height;
    const int64_t above = mb_double_wedge_reach(&j->mask, q);
    const int64_t below = mb_double_wedge_reach(&j->mask, -q);
    const int64_t reach = above > below ? above : below;
    const int64_t last = reach < width / 2 ? reach : width / 2;
    const double phase = pi * (double)(q * (height - 1) % (2 * height)) / (double)height;
    tile t;
    t.sign = q % 2 == 0 ? 1.0F : -1.0F;
    t.g = (float)cos(phase);
    t.h = -(float)sin(phase);
    for (t.first = j->mask.column_drop + 1; t.first <= last; t.first += BLOCK) {
        const int64_t left = last + 1 - t.first;
        t.count = left < BLOCK ? (left + LANES - 1) / LANES * LANES : BLOCK;
        for (int64_t i = 0; i < t.count; i++)
            t.weight[i] = mb_double_wedge_weight(&j->mask, q, t.first + i, above, below);
        take_sums(&t, u, width, &t.a, &t.b);
        take_sums(&t, mirrored_u, width, &t.ma, &t.mb);
        for (int side = 0; side < 2; side++) {
            w->down = side == 1;
            walk_over(j, &t, w, sums);
        }
    }
}

static mb_status evaluate_row(const job *j, int64_t q, int thread, double *sums)
{
    const mb_op_call *call = j->call;
    const int64_t width = j->size.width, pitch = mb_double_wedge_row_pitch(width);
    const size_t bytes = (size_t)width * 2 * sizeof(float);
    float *u = (float *)call->slots[MB_DOUBLE_WEDGE_BETWEEN] + thread * 3 * pitch;
    float *between = u + pitch, *between_u = between + pitch;
    walk w = {.row = j->spectrum + 2 * q * width};
    MB_TRY(mb_cancel_check());
    memcpy(u, w.row, bytes);
    MB_TRY(mb_fft_exec(call->device, call->ffts[MB_DOUBLE_WEDGE_ROWS_FFT], u, u,
                       call->slots[MB_DOUBLE_WEDGE_ROWS_WORK]));
    for (int64_t c = 0; c < j->classes; c++) {
        w.fraction = mb_double_wedge_fraction(j->shifts[j->opening[c]]);
        w.between = w.fraction != 0;
        w.mirrored = w.between ? between : w.row;
        if (w.between) {
            float taps[MB_DOUBLE_WEDGE_TAPS];
            mb_double_wedge_taps((double)w.fraction / MB_DOUBLE_WEDGE_GRAIN, taps);
            interpolate(w.row, between, width, taps);
            memcpy(between_u, between, bytes);
            MB_TRY(mb_fft_exec(call->device, call->ffts[MB_DOUBLE_WEDGE_ROWS_FFT], between_u,
                               between_u, call->slots[MB_DOUBLE_WEDGE_ROWS_WORK]));
        }
        each_tile(j, q, &w, u, w.between ? between_u : u, sums);
    }
    return MB_STATUS_OK;
}

/* Rows q = group, group + GROUPS ... */
static mb_status evaluate_group(const void *given, int64_t group, int thread)
{
    const job *j = given;
    double *sums = j->parts + group * j->p->centers.count;
    memset(sums, 0, (size_t)j->p->centers.count * sizeof *sums);
    for (int64_t q = group; q <= j->size.height; q += MB_DOUBLE_WEDGE_GROUPS)
        if (q > j->mask.drop && q > 0)
            MB_TRY(evaluate_row(j, q, thread, sums));
    return MB_STATUS_OK;
}

static void make_tables(job *j)
{
    const double pi = 3.14159265358979323846;
    const mb_vector *centers = &j->p->centers;
    for (int64_t x = 0; x < j->size.width; x++) {
        j->turns[2 * x] = (float)cos(2 * pi * (double)x / (double)j->size.width);
        j->turns[2 * x + 1] = -(float)sin(2 * pi * (double)x / (double)j->size.width);
    }
    for (int64_t i = 0; i < centers->count; i++) {
        j->shifts[i] = mb_double_wedge_shift(centers->values[i], j->size.width);
        if (mb_double_wedge_opens(centers, i, j->size.width))
            j->opening[j->classes++] = i;
    }
}

/* The metric of a sinogram: from the sums of the groups, in their order. */
static void store(const job *j, float *to, int64_t step)
{
    const double values = 2.0 * (double)j->size.height * (double)j->size.width;
    for (int64_t i = 0; i < j->p->centers.count; i++) {
        double sum = 0;
        for (int64_t group = 0; group < MB_DOUBLE_WEDGE_GROUPS; group++)
            sum += j->parts[group * j->p->centers.count + i];
        to[i * step] = (float)(sum / values);
    }
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_array *sino = call->arrays[MB_DOUBLE_WEDGE_SINO];
    const mb_array *result = call->arrays[MB_DOUBLE_WEDGE_RESULT];
    const int rank = sino->shape.rank;
    job j = {.call = call, .p = call->params, .size = mb_double_wedge_size_of(&sino->shape)};
    j.mask = mb_double_wedge_mask_of(j.p, &j.size);
    j.row_stride = sino->strides[rank - 2];
    j.spectrum = call->slots[MB_DOUBLE_WEDGE_SPECTRUM];
    j.turns = call->slots[MB_DOUBLE_WEDGE_TURNS];
    j.shifts = call->slots[MB_DOUBLE_WEDGE_TRIALS];
    j.opening = j.shifts + j.p->centers.count;
    j.parts = call->slots[MB_DOUBLE_WEDGE_PARTS];
    make_tables(&j);
    for (int64_t z = 0; z < j.size.rows; z++) {
        j.sino = (const float *)sino->data + (rank == 3 ? z * sino->strides[0] : 0);
        MB_TRY(mb_each_item(call,
                            (j.size.width + MB_DOUBLE_WEDGE_STRIP - 1) / MB_DOUBLE_WEDGE_STRIP,
                            transform_columns, &j));
        MB_TRY(mb_each_item(call, MB_DOUBLE_WEDGE_GROUPS, evaluate_group, &j));
        store(&j, (float *)result->data + (rank == 3 ? z * result->strides[0] : 0),
              result->strides[rank - 2]);
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_double_wedge = {
    .name = "double_wedge",
    .summary = "The metric by which Vo's method finds the rotation axis, for many trial columns "
               "of a sinogram.",
    .doc =
        "A sinogram over half a turn and, below it, the same one mirrored about the axis are a "
        "sinogram over a whole turn. The spectrum of such an image is weak outside a double "
        "wedge. The metric is the mean of its magnitudes there, and the axis is the column that "
        "makes it small. Columns that the mirror image lacks are taken from the sinogram with its "
        "angles reversed. Between columns the mirror image is interpolated by a cubic spline.\n"
        "The values are those of the metric in algotom.prep.calculation.find_center_vo, which "
        "smooths the sinogram before, with sigma 3 along angles and 1 along columns for a coarse "
        "search, and with sigma 2 and 2 for a fine one. Trials on half columns, such as 512 and "
        "512.5 of an odd number of columns, take the least time. Centers are rounded to 2^-21 "
        "columns.\n"
        "The metric does not depend on the order of the other trials. A sinogram that has values "
        "that are not finite gives NaN.",
    .reference = "N. T. Vo, M. Drakopoulos, R. C. Atwood, C. Reinhard, Opt. Express 22 (2014) "
                 "19078",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ROWS,
    .tolerance = 1e-5, /* sums of magnitudes in float, of two transforms */
};
