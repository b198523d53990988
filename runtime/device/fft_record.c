/*
** The rule by which cuFFT 12 sizes its work areas, given the codes of a record (fft_record.h). All
** functions are pure.
*/
#include "device/fft_record.h"
#include <string.h>

#define ALIGNMENT 2048        /* of a convolution area, in bytes */
#define PART_ALIGNMENT 1024   /* of the second of two parts */
#define SHARED_POINTS 4096    /* transforms up to this convolve in shared memory, without an area */
#define LONGEST_ROW 16384     /* longer rows are divided differently when there are further axes */
#define MOST_POINTS INT32_MAX /* beyond this cuFFT plans differently */
#define LARGEST_DIRECT_PRIME 127 /* a greater prime factor means a convolution (Bluestein) */

static const char at_most_size[] = "at most: the size of an axis is not recorded";
static const char at_most_points[] = "at most: the transform has 2^31 points or more";
static const char by_convolution[] =
    "by rule: an axis has a prime factor above 127 and is transformed by a convolution";

/* The recorded digit of a size, or -1. */
static int code_of(const mb_fft_record *record, int64_t n)
{
    char code = '.';
    if (n <= record->all) {
        code = record->codes[n];
    } else {
        for (int low = 0, high = record->more_count; low < high;) {
            int middle = low + (high - low) / 2;
            if (record->more[middle].n == n)
                code = record->more[middle].code;
            if (record->more[middle].n < n)
                low = middle + 1;
            else
                high = middle;
        }
    }
    const char *digit = code == '.' ? NULL : strchr(MB_FFT_CODES, code);
    return digit ? (int)(digit - MB_FFT_CODES) : -1;
}

static int64_t largest_prime(int64_t n)
{
    int64_t largest = 1;
    for (int64_t p = 2; p * p <= n; p += p == 2 ? 1 : 2)
        while (n % p == 0) {
            largest = p;
            n /= p;
        }
    return n > largest ? n : largest;
}

/* The smallest 2-3-5-smooth number >= n. */
static uint64_t smooth_above(uint64_t n)
{
    uint64_t best = 1;
    while (best < n)
        best *= 2;
    for (uint64_t five = 1; five < best; five *= 5)
        for (uint64_t three = five; three < best; three *= 3) {
            uint64_t size = three;
            while (size < n)
                size *= 2;
            if (size < best)
                best = size;
        }
    return best;
}

static uint64_t align_up(uint64_t bytes, uint64_t unit)
{
    return mb_bytes_add(bytes, unit - 1) / unit * unit;
}

/* The area of `count` convolutions for transforms of n points; 0 when they fit into shared
** memory. */
static uint64_t convolution_bytes(int64_t n, uint64_t count, uint64_t spare)
{
    if (n <= SHARED_POINTS)
        return 0;
    uint64_t points = smooth_above(2 * (uint64_t)n - 1) + spare;
    return align_up(mb_bytes_mul(mb_bytes_mul(points, count), 16), ALIGNMENT);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t complex_work(const mb_fft_record *record, const mb_fft_desc *desc, uint64_t points,
                             const char **how)
{
    const int64_t n = desc->dims[desc->rank - 1];
    const uint64_t bytes = mb_bytes_mul(points, 8);
    const bool long_rows = desc->rank > 1 && n > LONGEST_ROW;
    uint64_t work = 0;
    if (points > MOST_POINTS)
        *how = at_most_points;
    for (int i = 0; i < desc->rank; i++) {
        const int64_t size = desc->dims[i];
        const bool last = i == desc->rank - 1;
        const int code = code_of(record, size);
        if (code >= 0 && !(last && long_rows)) {
            if ((last ? code : code / 2) % 2)
                work = larger(work, bytes);
        } else if (largest_prime(size) > LARGEST_DIRECT_PRIME) {
            work = larger(work, convolution_bytes(size, points / (uint64_t)size, 0));
            *how = *how ? *how : desc->rank == 1 ? by_convolution : at_most_size;
        } else {
            work = larger(work, bytes);
            *how = *how ? *how : at_most_size;
        }
    }
    return *how && *how != by_convolution ? larger(work, bytes) : work;
}

/* The area of a real transform with an odd last axis: two transforms at a time are done as one
** complex transform, from one part of the area to another. */
static uint64_t odd_work(const mb_fft_record *record, const mb_fft_desc *desc, uint64_t outer,
                         uint64_t points, const char **how)
{
    const int64_t n = desc->dims[desc->rank - 1];
    const uint64_t pairs = mb_bytes_mul(((uint64_t)desc->batch + 1) / 2, outer);
    const uint64_t bytes = mb_bytes_mul(mb_bytes_mul((uint64_t)n, pairs), 8);
    const bool convolved = n > SHARED_POINTS && largest_prime(n) > LARGEST_DIRECT_PRIME;
    const bool back = desc->kind == MB_FFT_C2R && desc->batch % 2 == 0;
    bool second_place = false;
    if (points > MOST_POINTS)
        *how = at_most_points;
    for (int i = 0; i < desc->rank; i++) {
        const int code = code_of(record, desc->dims[i]);
        const bool last = i == desc->rank - 1;
        second_place |= code < 0 || (last ? code % 2 : code / 2 % 2 && back);
        if (code < 0 && !*how)
            *how = convolved && desc->rank == 1 ? by_convolution : at_most_size;
    }
    uint64_t second = align_up(mb_bytes_add(bytes, second_place ? 8 * pairs : 0), PART_ALIGNMENT);
    if (convolved)
        second = larger(second, convolution_bytes(n, pairs, 1));
    return mb_bytes_add(bytes, second);
}

static uint64_t real_work(const mb_fft_record *record, const mb_fft_desc *desc, uint64_t outer,
                          uint64_t points, const char **how)
{
    const int64_t n = desc->dims[desc->rank - 1];
    const uint64_t rows = mb_bytes_mul(outer, (uint64_t)desc->batch);
    const uint64_t half = mb_bytes_mul(mb_bytes_mul((uint64_t)(n / 2 + 1), rows), 8);
    const uint64_t real = mb_bytes_mul(mb_bytes_mul((uint64_t)n, rows), 4);
    const int code = desc->rank > 1 && n > LONGEST_ROW ? -1 : code_of(record, n);
    const int row = code < 0 ? -1 : desc->kind == MB_FFT_R2C ? code / 4 % 3 : code / 12;
    if (n % 2 && row != 0)
        return odd_work(record, desc, outer, points, how);
    uint64_t work = row == 0 ? 0 : row == 1 ? real : half;
    if (row != 0 && desc->batch > SHARED_POINTS &&
        largest_prime(desc->batch) > LARGEST_DIRECT_PRIME)
        work = mb_bytes_add(real, align_up(work, PART_ALIGNMENT)); /* the batch counts as an axis */
    if (row < 0) {
        *how = at_most_size;
        if (largest_prime(n) > LARGEST_DIRECT_PRIME)
            work = larger(mb_bytes_mul(real, 2) + ALIGNMENT,
                          mb_bytes_add(real, convolution_bytes(n / 2, rows, 1)));
    }
    for (int i = 0; i < desc->rank - 1; i++) {
        const int column = code_of(record, desc->dims[i]);
        if (column < 0) {
            *how = at_most_size;
            if (largest_prime(desc->dims[i]) > LARGEST_DIRECT_PRIME)
                work = larger(
                    work, convolution_bytes(desc->dims[i], half / 8 / (uint64_t)desc->dims[i], 0));
        }
        if (column < 0 || column / 2 % 2)
            work = larger(work, half);
    }
    if (points > MOST_POINTS) {
        *how = at_most_points;
        work = larger(work, desc->rank < 3 ? mb_bytes_mul(half, 2) : half);
    }
    return work;
}

uint64_t mb_fft_record_work(const mb_fft_record *record, const mb_fft_desc *desc, const char **how)
{
    uint64_t outer = 1;
    for (int i = 0; i < desc->rank - 1; i++)
        outer = mb_bytes_mul(outer, (uint64_t)desc->dims[i]);
    const uint64_t points = mb_bytes_mul(mb_bytes_mul(outer, (uint64_t)desc->dims[desc->rank - 1]),
                                         (uint64_t)desc->batch);
    *how = NULL;
    return desc->kind == MB_FFT_R2C || desc->kind == MB_FFT_C2R
               ? real_work(record, desc, outer, points, how)
               : complex_work(record, desc, points, how);
}
