/*
** The monotonic clock, and ticks.
**
** Ticks date records that are made far more often than they are read. A tick is one step of the
** processor's counter where that counter runs at one rate on all cores, and a nanosecond elsewhere.
** To read the counter takes less than half as long as to read the clock. Two pairs of (ticks, ns),
** one from the start and one from the present, convert the ticks of a record when it is read. Ticks
** of different threads are ordered up to some nanoseconds.
*/
#ifndef MB_CORE_CLOCK_H
#define MB_CORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t mb_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* The processor's counter; 0 where none is known. */
static inline uint64_t mb_counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return 0;
#endif
}

extern bool mb_ticks_are_counts; /* set by mb_ticks_begin */

/* Decides what a tick is. Call this before the first mb_ticks; later calls do nothing. */
void mb_ticks_begin(void);
/* For specs, before mb_ticks_begin: ticks are nanoseconds, whatever the processor has. */
void mb_ticks_without_counter(void);

static inline uint64_t mb_ticks(void)
{
    return mb_ticks_are_counts ? mb_counter() : mb_now_ns();
}

typedef struct mb_tick_scale {
    uint64_t first_ticks, first_ns;
    uint64_t last_ticks, last_ns; /* the present */
} mb_tick_scale;

/* For the ticks of all records made so far. */
mb_tick_scale mb_tick_scale_now(void);
/* CLOCK_MONOTONIC. */
uint64_t mb_ticks_ns(const mb_tick_scale *scale, uint64_t ticks);

#endif
