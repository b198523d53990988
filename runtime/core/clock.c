/*
** What a tick is, and how many nanoseconds that takes.
*/
#include "core/clock.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define READINGS 8 /* of a pair; the one that took least time counts */

bool mb_ticks_are_counts;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool counter_refused;
static uint64_t first_ticks, first_ns;

#if defined(__x86_64__)
/* Linux takes another clock where the counters of the cores differ. */
static bool linux_trusts_counter(void)
{
    static const char *const counting[] = {"tsc\n", "kvm-clock\n", "hyperv_clocksource_tsc_page\n"};
    char name[64] = "";
    FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");
    if (!f)
        return true;
    const bool known = fgets(name, sizeof name, f) != NULL;
    fclose(f);
    for (size_t i = 0; i < sizeof counting / sizeof counting[0]; i++)
        if (strcmp(name, counting[i]) == 0)
            return true;
    return !known;
}

static bool has_counter(void)
{
    unsigned a, b, c, d;
    const bool invariant = __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1u);
    return invariant && linux_trusts_counter();
}
#elif defined(__aarch64__)
static bool has_counter(void)
{
    return true; /* the architecture has one for the whole system */
}
#else
static bool has_counter(void)
{
    return false;
}
#endif

/* The counter and the clock at one moment. A thread may be interrupted between two readings. */
static void read_pair(uint64_t *ticks, uint64_t *ns)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < READINGS; i++) {
        const uint64_t before = mb_counter(), now = mb_now_ns(), span = mb_counter() - before;
        if (span < least) {
            least = span;
            *ticks = before + span / 2;
            *ns = now;
        }
    }
}

static void begin(void)
{
    mb_ticks_are_counts = !counter_refused && has_counter();
    if (mb_ticks_are_counts)
        read_pair(&first_ticks, &first_ns);
}

void mb_ticks_begin(void)
{
    pthread_once(&once, begin);
}

void mb_ticks_without_counter(void)
{
    counter_refused = true;
}

mb_tick_scale mb_tick_scale_now(void)
{
    mb_tick_scale scale = {first_ticks, first_ns, 0, 0};
    if (mb_ticks_are_counts)
        read_pair(&scale.last_ticks, &scale.last_ns);
    else
        scale.last_ticks = scale.last_ns = mb_now_ns();
    return scale;
}

uint64_t mb_ticks_ns(const mb_tick_scale *scale, uint64_t ticks)
{
    if (!mb_ticks_are_counts)
        return ticks;
    if (ticks <= scale->first_ticks)
        return scale->first_ns;
    if (ticks >= scale->last_ticks)
        return scale->last_ns;
    const unsigned __int128 part = ticks - scale->first_ticks;
    return scale->first_ns + (uint64_t)(part * (scale->last_ns - scale->first_ns) /
                                        (scale->last_ticks - scale->first_ticks));
}
