/*
** Eight lanes of 64 bits take the words of a line in turn: xor, multiplication by an odd constant,
** xor with the upper half. Each of these steps can be undone, so a changed word always changes its
** lane. The multiplications of the lanes do not wait for each other.
*/
#include "core/line_hash.h"

#include <string.h>

#define LANES 8
#define FACTOR UINT64_C(0x9E3779B97F4A7C15) /* 2^64 over the golden ratio, odd */

static uint64_t stir(uint64_t lane, uint64_t word)
{
    lane = (lane ^ word) * FACTOR;
    return lane ^ (lane >> 32);
}

/* Spreads the bits of a word over all others. */
static uint64_t spread(uint64_t word)
{
    word = (word ^ (word >> 31)) * UINT64_C(0xD6E8FEB86659FD93);
    word = (word ^ (word >> 29)) * FACTOR;
    return word ^ (word >> 32);
}

uint64_t mb_line_hash(const void *line, size_t bytes, uint64_t place)
{
    const unsigned char *at = line;
    uint64_t lanes[LANES], words[LANES];
    for (uint64_t i = 0; i < LANES; i++)
        lanes[i] = spread(place + i * FACTOR + 1);
    size_t left = bytes;
    for (; left >= sizeof words; left -= sizeof words, at += sizeof words) {
        memcpy(words, at, sizeof words);
        for (int i = 0; i < LANES; i++)
            lanes[i] = stir(lanes[i], words[i]);
    }
    if (left > 0) {
        memset(words, 0, sizeof words);
        memcpy(words, at, left);
        for (int i = 0; i < LANES; i++)
            lanes[i] = stir(lanes[i], words[i]);
    }
    uint64_t sum = spread(bytes);
    for (int i = 0; i < LANES; i++)
        sum = spread(sum ^ lanes[i]) + (uint64_t)i;
    return sum;
}
