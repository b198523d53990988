/*
** Size classes of the pool, in units: eight per octave, with a bitmap of the non-empty ones. Sizes
** below 8 have a class each; the class of a larger size is its octave and the next three bits. Any
** block of a higher class fits a request of a lower one. Blocks of the request's own class may be
** too small, so that class is scanned.
*/
#ifndef MB_MEMORY_POOL_BINS_H
#define MB_MEMORY_POOL_BINS_H

#include <stdint.h>

#define MB_BIN_COUNT 256
#define MB_BIN_WORDS (MB_BIN_COUNT / 64)

static inline unsigned mb_bin_of(uint32_t units)
{
    if (units < 8)
        return units;
    unsigned octave = 31u - (unsigned)__builtin_clz(units);
    return (octave - 2) * 8 + ((units >> (octave - 3)) & 7u);
}

/* The first set bit at or after `from`, or MB_BIN_COUNT. */
static inline unsigned mb_bin_next(const uint64_t *words, unsigned from)
{
    if (from >= MB_BIN_COUNT)
        return MB_BIN_COUNT;
    unsigned word = from / 64;
    uint64_t bits = words[word] & (~UINT64_C(0) << (from % 64));
    while (!bits) {
        if (++word == MB_BIN_WORDS)
            return MB_BIN_COUNT;
        bits = words[word];
    }
    return word * 64 + (unsigned)__builtin_ctzll(bits);
}

static inline unsigned mb_bin_last(const uint64_t *words)
{
    for (unsigned word = MB_BIN_WORDS; word-- > 0;)
        if (words[word])
            return word * 64 + 63u - (unsigned)__builtin_clzll(words[word]);
    return MB_BIN_COUNT;
}

#endif
