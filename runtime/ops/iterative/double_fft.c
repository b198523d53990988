/* See double_fft.h. */
#include "ops/iterative/double_fft.h"
#include "core/multiversion.h"
#include <math.h>

void mb_double_fft_roots(int64_t n, mb_complex *roots)
{
    for (int64_t k = 0; k < n; k++) {
        const double angle = -2 * 3.14159265358979323846 * (double)k / (double)n;
        roots[k] = (mb_complex){cos(angle), sin(angle)};
    }
}

static mb_complex times(mb_complex a, mb_complex b)
{
    return (mb_complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static int64_t least_factor(int64_t n)
{
    if (n % 4 == 0)
        return 4;
    for (int64_t p = 2; p * p <= n; p++)
        if (n % p == 0)
            return p;
    return n;
}

typedef struct transform {
    int64_t n;
    const mb_complex *roots;
} transform;

/* Four transforms of m points in `to`, of the points j mod 4, to one. */
MB_MULTIVERSION
static void join_four(const transform *t, int64_t m, mb_complex *to)
{
    const int64_t step = t->n / (4 * m);
    for (int64_t k = 0; k < m; k++) {
        const mb_complex a = to[k], b = times(to[m + k], t->roots[k * step]),
                         c = times(to[2 * m + k], t->roots[2 * k * step]),
                         d = times(to[3 * m + k], t->roots[3 * k * step]);
        const mb_complex ac = {a.re + c.re, a.im + c.im}, ca = {a.re - c.re, a.im - c.im},
                         bd = {b.re + d.re, b.im + d.im}, db = {b.re - d.re, b.im - d.im};
        to[k] = (mb_complex){ac.re + bd.re, ac.im + bd.im};
        to[m + k] = (mb_complex){ca.re + db.im, ca.im - db.re};
        to[2 * m + k] = (mb_complex){ac.re - bd.re, ac.im - bd.im};
        to[3 * m + k] = (mb_complex){ca.re - db.im, ca.im + db.re};
    }
}

/* The same for p transforms, p at most 7. */
static void join(const transform *t, int64_t p, int64_t m, mb_complex *to)
{
    enum { MOST = 7 };
    const int64_t step = t->n / (p * m);
    mb_complex part[MOST];
    for (int64_t k = 0; k < m; k++) {
        for (int64_t q = 0; q < p; q++)
            part[q] = times(to[q * m + k], t->roots[q * k * step]);
        for (int64_t r = 0; r < p; r++) {
            mb_complex sum = part[0];
            for (int64_t q = 1; q < p; q++) {
                const mb_complex add = times(part[q], t->roots[q * r % p * (t->n / p)]);
                sum = (mb_complex){sum.re + add.re, sum.im + add.im};
            }
            to[r * m + k] = sum;
        }
    }
}

/* The transform of n points, `step` apart: by those of their residues. */
static void run(const transform *t, int64_t n, int64_t step, const mb_complex *from, mb_complex *to)
{
    if (n == 1) {
        *to = *from;
        return;
    }
    const int64_t p = least_factor(n), m = n / p;
    for (int64_t q = 0; q < p; q++) /* NOLINTNEXTLINE(misc-no-recursion): as deep as factors */
        run(t, m, step * p, from + q * step, to + q * m);
    if (p == 4)
        join_four(t, m, to);
    else
        join(t, p, m, to);
}

void mb_double_fft(int64_t n, const mb_complex *roots, const mb_complex *from, mb_complex *to)
{
    const transform t = {n, roots};
    run(&t, n, 1, from, to);
}
