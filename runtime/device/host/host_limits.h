/*
** The limits that the system sets on the memory of this process: control groups (batch systems,
** containers, systemd) and resource limits (ulimit -v, ulimit -d).
*/
#ifndef MB_DEVICE_HOST_HOST_LIMITS_H
#define MB_DEVICE_HOST_HOST_LIMITS_H

#include <stdint.h>

/* How much memory the process may take. UINT64_MAX: no limit. */
typedef struct mb_host_limits {
    uint64_t most; /* the smallest limit */
    /* what the limits leave; the smallest limit is not always the one that leaves least */
    uint64_t left;
    uint64_t
        /* what RLIMIT_AS leaves; a part of it is kept for libraries, stacks and the heap */
        address_space;
    char name[200]; /* what determines `left`: a file of a control group, "RLIMIT_AS", or "" */
    /* The same three without RLIMIT_AS: limits on memory that is used, not on addresses. */
    uint64_t used_most, used_left;
    char used_name[200];
    uint64_t address_most; /* RLIMIT_AS */
    uint64_t address_left; /* addresses beside those of the pools, and of the stacks to come */
    uint64_t address_kept; /* the least that a pool leaves of addresses, if it has as many itself */
} mb_host_limits;

/* Reads the control groups of the process. `root` is put before every path, so that a spec can give
** a tree of its own: ROOT/proc/self/cgroup, ROOT/sys/fs/cgroup/... It is "" for the system's
** files. */
void mb_host_limits_of_groups(const char *root, mb_host_limits *limits);
/* The same, and the resource limits of this process. A part of them is kept for the heap,
** libraries, and the stacks of `threads` threads. `reserved` bytes of addresses belong to the pool
** and count as free. */
void mb_host_limits_read(int threads, uint64_t reserved, mb_host_limits *limits);

/* The memory of the machine, and what of it is available, as the system says. */
uint64_t mb_host_total(void);
uint64_t mb_host_available(void);
/* What the host's pool may take of its own accord, for one of so many processes that share the
** memory: what the limits leave without what the process takes beside the pool, and at most nine
** tenths of what is available on the machine. `reserved` as above. */
uint64_t mb_host_budget(int threads, uint64_t reserved, uint64_t processes);

/* The number after `key` in a small text file, for example /proc/meminfo, or 0. */
uint64_t mb_host_figure(const char *path, const char *key);

#endif
