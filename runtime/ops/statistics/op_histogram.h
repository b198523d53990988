/*
** histogram: what the host and the CUDA kernel share. Arrays: a (in), counts (out, absent where the
** other is given), into (in and out: counts that are added to, or absent). Both are f64[bins + 3]: the bins,
** then how many values are below them, above them, and NaN. Counts are whole numbers, so that sums
** do not depend on their order.
**
** Slot MB_HISTOGRAM_TABLES: 64-bit integers, one table of all counters for each of the host's
** workers, one for all on CUDA.
*/
#ifndef MB_OPS_OP_HISTOGRAM_H
#define MB_OPS_OP_HISTOGRAM_H

#include "core/both.h"
#include "ops/op.h"
#include <string.h>

typedef struct mb_histogram_params {
    int bits; /* MB_HISTOGRAM_VALUE ... */
    int64_t bins;
    double low, high;
    mb_vector prefix;
} mb_histogram_params;

enum { MB_HISTOGRAM_A, MB_HISTOGRAM_COUNTS, MB_HISTOGRAM_INTO };
enum { MB_HISTOGRAM_TABLES };
/* What the bins are of: values, or halves of their keys. */
enum { MB_HISTOGRAM_VALUE, MB_HISTOGRAM_HIGH, MB_HISTOGRAM_LOW };
/* Counters behind the bins. */
enum { MB_HISTOGRAM_BELOW, MB_HISTOGRAM_ABOVE, MB_HISTOGRAM_NAN, MB_HISTOGRAM_OUTSIDE };

#define MB_HISTOGRAM_HALVES 65536 /* of a key */
#define MB_HISTOGRAM_PREFIXES 16

/* How values are counted; passed to kernels by value. */
typedef struct mb_histogram_rule {
    int bits;
    int bins;
    double low, high, scale; /* scale: bins a unit */
    int prefixes;
    uint16_t prefix[MB_HISTOGRAM_PREFIXES];
} mb_histogram_rule;

static inline int mb_histogram_bins(const mb_histogram_params *p)
{
    return p->bits == MB_HISTOGRAM_VALUE  ? (int)p->bins
           : p->bits == MB_HISTOGRAM_HIGH ? MB_HISTOGRAM_HALVES
                                          : MB_HISTOGRAM_HALVES * (int)p->prefix.count;
}

static inline mb_histogram_rule mb_histogram_rule_of(const mb_histogram_params *p)
{
    mb_histogram_rule rule;
    memset(&rule, 0, sizeof rule);
    rule.bits = p->bits;
    rule.bins = mb_histogram_bins(p);
    rule.low = p->low;
    rule.high = p->high;
    rule.scale = (double)p->bins / (p->high - p->low);
    rule.prefixes = p->bits == MB_HISTOGRAM_LOW ? (int)p->prefix.count : 0;
    for (int i = 0; i < rule.prefixes && i < MB_HISTOGRAM_PREFIXES; i++)
        rule.prefix[i] = (uint16_t)p->prefix.values[i];
    return rule;
}

/* An integer that orders as the values do; -0 is before 0. Not for NaN. */
static MB_BOTH inline uint32_t mb_histogram_key(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* The number of a value's counter. */
static MB_BOTH inline int mb_histogram_of_value(const mb_histogram_rule *rule, float v)
{
    const double x = v;
    if (x >= rule->low && x <= rule->high) {
        const int bin = (int)((x - rule->low) * rule->scale);
        return bin < rule->bins ? bin : rule->bins - 1;
    }
    return rule->bins + (x < rule->low    ? MB_HISTOGRAM_BELOW
                         : x > rule->high ? MB_HISTOGRAM_ABOVE
                                          : MB_HISTOGRAM_NAN);
}

static MB_BOTH inline int mb_histogram_of_high(const mb_histogram_rule *rule, float v)
{
    return v == v ? (int)(mb_histogram_key(v) >> 16) : rule->bins + MB_HISTOGRAM_NAN;
}

static MB_BOTH inline int mb_histogram_of_low(const mb_histogram_rule *rule, float v)
{
    if (v != v)
        return rule->bins + MB_HISTOGRAM_NAN;
    const uint32_t key = mb_histogram_key(v), high = key >> 16;
    for (int i = 0; i < rule->prefixes; i++)
        if (rule->prefix[i] == high)
            return i * MB_HISTOGRAM_HALVES + (int)(key & 0xffffu);
    return rule->bins + (high < rule->prefix[0] ? MB_HISTOGRAM_BELOW : MB_HISTOGRAM_ABOVE);
}

#endif
