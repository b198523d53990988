/*
** The k-th smallest of some floats, by Hoare's selection: for medians and percentiles.
*/
#ifndef MB_CORE_KTH_SMALLEST_H
#define MB_CORE_KTH_SMALLEST_H

#include <stdint.h>

/* k from 0; no NaN among the n values. Reorders them so that all before index k are at most the
** result. */
static inline float mb_kth_smallest(float *values, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1;
    while (low < high) {
        const float pivot = values[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot)
                i++;
            while (values[j] > pivot)
                j--;
            if (i <= j) {
                const float swapped = values[i];
                values[i++] = values[j];
                values[j--] = swapped;
            }
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            break;
    }
    return values[k];
}

#endif
