/*
** The choice of a transform's size. On GPUs the time per point varies twofold among smooth sizes,
** and the work area is either nothing or as large as the data, so there the choice follows a record
** (fft_record.h). All functions are pure.
*/
#include "device/device.h"
#include "device/planned/planned_backend.h"
#include <math.h>

/*
** Cost model without a record: work per point rises with the radices used. A power of two costs 1;
** each factor of 3, 5 or 7 makes a pass that costs a little more than two radix-2 passes of the
** same length. The figures are relative times of FFTW on 7-smooth sizes and serve only to rank
** candidates. `n` is 7-smooth.
*/
static double smooth_cost(int64_t n)
{
    static const struct {
        int radix;
        double factor;
    } radices[] = {{3, 1.05}, {5, 1.08}, {7, 1.12}};
    double cost = (double)n;

    for (size_t i = 0; i < sizeof radices / sizeof *radices; i++)
        while (n % radices[i].radix == 0) {
            n /= radices[i].radix;
            cost *= radices[i].factor;
        }
    return cost;
}

static int64_t power_above(int64_t n)
{
    int64_t power = 2;
    while (power < n)
        power *= 2;
    return power;
}

/* The smallest even 7-smooth number that is at least n, which is at most 2^40 + 1: each product of
** odd primes up to 7 is doubled until it is large enough. */
static int64_t smooth_above(int64_t n)
{
    int64_t best = power_above(n);
    for (int64_t sevens = 1; sevens < best; sevens *= 7)
        for (int64_t fives = sevens; fives < best; fives *= 5)
            for (int64_t odd = fives; odd < best; odd *= 3) {
                int64_t size = 2 * odd;
                while (size < n)
                    size *= 2;
                if (size < best)
                    best = size;
            }
    return best;
}

/* The candidates >= n by smoothness, ascending; the last is a power of two. */
static int smooth_candidates(int64_t n, mb_fft_candidate *list)
{
    int count = 0;
    const int64_t power = power_above(n);
    double best = smooth_cost(power);
    for (int64_t size = smooth_above(n); size < power && (double)size < best;
         size = smooth_above(size + 1)) {
        const double cost = smooth_cost(size);
        if (cost < best && count < MB_FFT_MAX_CANDIDATES - 1) {
            best = cost;
            list[count++] = (mb_fft_candidate){.n = size, .ps = cost / (double)size};
        }
    }
    list[count++] = (mb_fft_candidate){.n = power, .ps = smooth_cost(power) / (double)power};
    return count;
}

/* Does a real transform of rows of n samples, or of n rows, need a work area in one of its
** directions? */
static int work_of(const mb_fft_record *record, int64_t n, mb_fft_axis axis)
{
    static const mb_fft_kind kinds[] = {MB_FFT_R2C, MB_FFT_C2R};
    const int64_t dims[] = {n, 2};
    uint64_t work = 0;
    for (int i = 0; i < 2; i++) {
        const char *how;
        mb_fft_desc desc = mb_fft_describe(kinds[i], axis == MB_FFT_ROW ? 1 : 2, dims, 1, true);
        work += mb_fft_record_work(record, &desc, &how);
    }
    return work > 0;
}

static mb_fft_candidate candidate_of(const mb_fft_record *record, const mb_fft_time *time,
                                     mb_fft_axis axis)
{
    return (mb_fft_candidate){.n = time->n,
                              .ps = axis == MB_FFT_ROW ? time->row_ps : time->column_ps,
                              .work = work_of(record, time->n, axis)};
}

static bool is_timed(const mb_fft_record *record, int64_t n)
{
    return record && record->time_count &&
           power_above(n) <= record->times[record->time_count - 1].n;
}

static int measured_candidates(const mb_fft_record *record, int64_t n, mb_fft_axis axis,
                               mb_fft_candidate *list)
{
    int count = 0;
    const int64_t power = power_above(n);
    for (int i = 0; i < record->time_count && count < MB_FFT_MAX_CANDIDATES; i++)
        if (record->times[i].n >= n && record->times[i].n <= power)
            list[count++] = candidate_of(record, &record->times[i], axis);
    return count;
}

/* Time times memory. The memory is the data, one more array of its size (a transfer function or a
** result), and the work area, which is nothing or as large as the data. */
static double weight_of(double points, double ps, int work)
{
    return points * ps * points * (2 + work);
}

int64_t mb_fft_choose_size(const mb_device *device, int64_t n, mb_fft_axis axis,
                           mb_fft_candidate *list, int *count, bool *measured)
{
    const mb_fft_record *record = device ? mb_device_fft_record(device) : NULL;
    *count = 0;
    *measured = false;
    if (n <= 2)
        return 2;
    if (n > (INT64_C(1) << 40))
        return n;
    *measured = is_timed(record, n);
    *count = *measured ? measured_candidates(record, n, axis, list) : smooth_candidates(n, list);
    int best = 0;
    double least = INFINITY;
    for (int i = 0; i < *count; i++) {
        const double points = (double)list[i].n;
        const double weight =
            *measured ? weight_of(points, list[i].ps, list[i].work) : points * list[i].ps;
        if (weight < least) {
            least = weight;
            best = i;
        }
    }
    return list[best].n;
}

int64_t mb_fft_good_size(int64_t n)
{
    mb_fft_candidate list[MB_FFT_MAX_CANDIDATES];
    int count;
    bool measured;
    return mb_fft_choose_size(NULL, n, MB_FFT_ROW, list, &count, &measured);
}

/* Drops candidates that are worse than another one in every respect. */
static int worth_trying(mb_fft_candidate *list, int count)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        bool beaten = false;
        for (int j = 0; j < kept && !beaten; j++) /* the kept ones are smaller */
            beaten = list[j].ps <= list[i].ps && list[j].work <= list[i].work;
        if (!beaten)
            list[kept++] = list[i];
    }
    return kept;
}

/* The one candidate of an axis whose extent is given. Its time is that of the next larger size with
** a recorded time. */
static int given_candidate(const mb_fft_record *record, int64_t n, mb_fft_axis axis,
                           mb_fft_candidate *list)
{
    int i = 0;
    while (record->times[i].n < n)
        i++;
    list[0] = candidate_of(record, &record->times[i], axis);
    list[0].n = n;
    list[0].work = work_of(record, n, axis);
    return 1;
}

bool mb_fft_choose_grid(const mb_device *device, int rank, const int64_t *least, const bool *given,
                        int64_t *sizes)
{
    mb_fft_candidate list[3][MB_FFT_MAX_CANDIDATES];
    int count[3] = {1, 1, 1};
    const mb_fft_record *record = device ? mb_device_fft_record(device) : NULL;
    bool measured = true;
    for (int i = 0; i < rank; i++)
        measured = measured && is_timed(record, least[i]);
    for (int i = 0; i < rank; i++) {
        const mb_fft_axis axis = i == rank - 1 ? MB_FFT_ROW : MB_FFT_COLUMN;
        const bool fixed = given[i] || (axis == MB_FFT_COLUMN && least[i] == 1);
        sizes[i] = fixed ? least[i] : mb_fft_good_size(least[i]);
        if (measured && fixed)
            count[i] = given_candidate(record, least[i], axis, list[i]);
        else if (measured)
            count[i] = worth_trying(list[i], measured_candidates(record, least[i], axis, list[i]));
    }
    for (int i = rank; i < 3; i++)
        list[i][0] = (mb_fft_candidate){.n = 1};
    double best = INFINITY;
    for (int a = 0; measured && a < count[0]; a++)
        for (int b = 0; b < count[1]; b++)
            for (int c = 0; c < count[2]; c++) {
                const mb_fft_candidate *axes[] = {&list[0][a], &list[1][b], &list[2][c]};
                double points = 1, ps = 0;
                int work = 0;
                for (int i = 0; i < 3; i++) {
                    points *= (double)axes[i]->n;
                    ps += axes[i]->ps;
                    work |= axes[i]->work;
                }
                const double weight = weight_of(points, ps, work);
                if (weight >= best)
                    continue;
                best = weight;
                for (int i = 0; i < rank; i++)
                    sizes[i] = axes[i]->n;
            }
    return measured;
}
