/*
** Whole numbers of 64 bits as floating-point numbers.
*/
#ifndef MB_CORE_EXACT_64_H
#define MB_CORE_EXACT_64_H

#include <stdbool.h>
#include <stdint.h>

/* Has a float64 the whole number with this absolute value? It has what is at most 53 bits long,
** zeros at the end left out. */
static inline bool mb_is_exact_64(uint64_t magnitude)
{
    return magnitude >> 53 == 0 || magnitude >> __builtin_ctzll(magnitude) >> 53 == 0;
}

/* The absolute value of a signed number; 2^63 for the least one. */
static inline uint64_t mb_magnitude_64(int64_t value)
{
    return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

#endif
