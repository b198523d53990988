/*
** The bell: a counter of rings, and a futex on it. The kernel compares the counter with the ticket
** before it lets a thread sleep. Ringing is one addition while nobody sleeps. A sleeper counts
** itself before it looks at the rings, and a ringer adds its ring before it looks at the sleepers.
** These operations are sequentially consistent, so one of the two sees the other.
*/
#define _GNU_SOURCE
#include "core/wake.h"
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic uint32_t rings;
static _Atomic uint32_t sleepers;

uint32_t mb_wake_ticket(void)
{
    return atomic_load(&rings);
}

bool mb_wake_sleep(uint32_t ticket)
{
    bool signalled = false;
    atomic_fetch_add(&sleepers, 1);
    while (!signalled && atomic_load(&rings) == ticket)
        signalled = syscall(SYS_futex, &rings, FUTEX_WAIT_PRIVATE, ticket, NULL, NULL, 0) != 0 &&
                    errno == EINTR;
    atomic_fetch_sub(&sleepers, 1);
    return !signalled;
}

void mb_wake_ring(void)
{
    const int kept = errno; /* of the code that a signal handler interrupted */
    atomic_fetch_add(&rings, 1);
    if (atomic_load(&sleepers) > 0)
        syscall(SYS_futex, &rings, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    errno = kept;
}
