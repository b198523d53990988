/*
** Limits on the memory of the process.
**
** A control group counts the memory of its processes and of all groups below it. So the limits of
** all groups bind, from the process's own up to the root. Version 2 has one tree (memory.max,
** memory.high, memory.current), version 1 a separate tree for memory (memory.limit_in_bytes,
** memory.usage_in_bytes); a machine may have both. A group's usage includes the page cache of files
** that its processes read. The system reclaims the page cache when it needs memory, so it counts as
** free here. A container may see its own group as the root, or a path that does not exist inside
** it: missing folders are skipped.
*/
#include "device/host/host_limits.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define KEPT_BYTES                                                                                 \
    (UINT64_C(128) << 20) /* kept of a limited address space: the heap, libraries, usual rings */
#define THREAD_BYTES (UINT64_C(16) << 20)  /* kept for the stacks of each thread and its carriers */
#define BESIDE_BYTES (UINT64_C(48) << 20)  /* file buffers, tables of FFT plans, touched stacks */
#define NO_LIMIT_BYTES (UINT64_C(1) << 60) /* version 1 writes "no limit" as a larger number */

/* The files of one version. */
typedef struct group_files {
    const char *limits[2]; /* each a limit */
    const char *used[2];   /* what counts against each; version 1 has one of memory and swap */
    const char *cache[2];  /* keys of memory.stat: page cache that can be reclaimed */
} group_files;

static const group_files VERSION_2 = {{"memory.max", "memory.high"},
                                      {"memory.current", "memory.current"},
                                      {"inactive_file ", "active_file "}};
static const group_files VERSION_1 = {{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"},
                                      {"memory.usage_in_bytes", "memory.memsw.usage_in_bytes"},
                                      {"total_inactive_file ", "total_active_file "}};

uint64_t mb_host_figure(const char *path, const char *key)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    char line[256];
    unsigned long long value = 0;
    size_t length = strlen(key);
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, key, length) && sscanf(line + length, "%llu", &value) == 1)
            break;
    fclose(file);
    return value;
}

/* The number in a limit's file; UINT64_MAX if the file does not exist or says "max". 0 is a valid
** limit. */
static uint64_t read_limit(const char *path)
{
    FILE *file = fopen(path, "r");
    unsigned long long value = 0;
    if (!file)
        return UINT64_MAX;
    const bool found = fscanf(file, "%llu", &value) == 1;
    fclose(file);
    return found && value < NO_LIMIT_BYTES ? value : UINT64_MAX;
}

static void lower(mb_host_limits *limits, uint64_t most, uint64_t left, const char *name)
{
    if (most < limits->most)
        limits->most = most;
    if (left < limits->left) {
        limits->left = left;
        snprintf(limits->name, sizeof limits->name, "%s", name);
    }
}

/* The same of a limit on memory that is used. */
static void lower_used(mb_host_limits *limits, uint64_t most, uint64_t left, const char *name)
{
    if (left < limits->used_left) {
        limits->used_most = most;
        limits->used_left = left;
        snprintf(limits->used_name, sizeof limits->used_name, "%s", name);
    }
}

/* The limits of the group in `folder`, an absolute path without the root. */
static void read_group(const char *root, const char *folder, const group_files *files,
                       mb_host_limits *limits)
{
    char path[4400];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s%s/%s", root, folder, files->limits[i]);
        const uint64_t limit = read_limit(path);
        if (limit == UINT64_MAX)
            continue;
        snprintf(path, sizeof path, "%s%s/%s", root, folder, files->used[i]);
        uint64_t used = mb_host_figure(path, "");
        snprintf(path, sizeof path, "%s%s/memory.stat", root, folder);
        uint64_t cache =
            mb_host_figure(path, files->cache[0]) + mb_host_figure(path, files->cache[1]);
        used = used > cache ? used - cache : 0;
        snprintf(path, sizeof path, "%s/%s", folder, files->limits[i]);
        lower(limits, limit, limit > used ? limit - used : 0, path);
        lower_used(limits, limit, limit > used ? limit - used : 0, path);
    }
}

/* The limits of the groups from `path` up to the root of the tree mounted at `mount`. */
static void walk_up(const char *root, const char *mount, const char *path, const group_files *files,
                    mb_host_limits *limits)
{
    char folder[4200];
    const size_t length = strlen(mount);
    /* The path leaves the tree that this process sees: only the root can be read. */
    snprintf(folder, sizeof folder, "%s%s", mount, strstr(path, "/..") ? "" : path);
    for (;;) {
        while (strlen(folder) > length && folder[strlen(folder) - 1] == '/')
            folder[strlen(folder) - 1] = '\0';
        read_group(root, folder, files, limits);
        char *slash = strrchr(folder, '/');
        if (strlen(folder) <= length || !slash)
            return;
        *slash = '\0';
    }
}

static bool names_memory(const char *controllers)
{
    for (const char *at = controllers; (at = strstr(at, "memory")) != NULL; at += strlen("memory"))
        if ((at == controllers || at[-1] == ',') && (at[6] == '\0' || at[6] == ','))
            return true;
    return false;
}

void mb_host_limits_of_groups(const char *root, mb_host_limits *limits)
{
    char line[4200];
    *limits = (mb_host_limits){.most = UINT64_MAX,
                               .left = UINT64_MAX,
                               .address_space = UINT64_MAX,
                               .used_most = UINT64_MAX,
                               .used_left = UINT64_MAX,
                               .address_most = UINT64_MAX,
                               .address_left = UINT64_MAX};
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *file = fopen(line, "r");
    while (file && fgets(line, sizeof line, file)) { /* NUMBER:CONTROLLER,CONTROLLER:PATH */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'),
             *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *controllers++ = *path++ = '\0';
        if (names_memory(controllers))
            walk_up(root, "/sys/fs/cgroup/memory", path, &VERSION_1, limits);
        else if (!*controllers) {
            walk_up(root, "/sys/fs/cgroup", path, &VERSION_2, limits);
            walk_up(root, "/sys/fs/cgroup/unified", path, &VERSION_2, limits);
        }
    }
    if (file)
        fclose(file);
}

static uint64_t without(uint64_t bytes, uint64_t others)
{
    return bytes > others ? bytes - others : 0;
}

/* What a resource limit leaves: the limit without the bytes that count against it now, a line of
** /proc/self/status. */
static uint64_t left_of(uint64_t limit, const char *used_key)
{
    return without(limit, mb_host_figure("/proc/self/status", used_key) * 1024);
}

/* What a pool may take of the bytes that a resource limit leaves: a part is for the rest of the
** process. A quarter of a large one is, so that rings of any size fit under a larger limit. */
static uint64_t for_pool(uint64_t left, int threads)
{
    const uint64_t kept = KEPT_BYTES + THREAD_BYTES * (uint64_t)threads;
    const uint64_t part = left / 4 > kept ? left / 4 : kept;
    return left / 2 > part ? left - part : left / 2;
}

void mb_host_limits_read(int threads, uint64_t reserved, mb_host_limits *limits)
{
    struct rlimit limit;
    const uint64_t stacks = THREAD_BYTES * (uint64_t)threads;
    mb_host_limits_of_groups("", limits);
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        const uint64_t left = left_of(limit.rlim_cur, "VmSize:");
        limits->address_most = limit.rlim_cur;
        limits->address_left = without(left, stacks);
        limits->address_kept = KEPT_BYTES + stacks;
        limits->address_space = for_pool(left + reserved, threads);
        lower(limits, limit.rlim_cur, limits->address_space, "RLIMIT_AS (ulimit -v)");
    }
    if (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        const uint64_t left = left_of(limit.rlim_cur, "VmData:");
        lower(limits, limit.rlim_cur, for_pool(left, threads), "RLIMIT_DATA (ulimit -d)");
        lower_used(limits, limit.rlim_cur, without(left, stacks), "RLIMIT_DATA (ulimit -d)");
    }
}

uint64_t mb_host_total(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t mb_host_available(void)
{
    const uint64_t bytes = mb_host_figure("/proc/meminfo", "MemAvailable:") * 1024;
    return bytes ? bytes : mb_host_total() / 2;
}

uint64_t mb_host_budget(int threads, uint64_t reserved, uint64_t processes)
{
    mb_host_limits limits;
    mb_host_limits_read(threads, reserved, &limits);
    uint64_t budget = mb_host_available() / processes / 10 * 9;
    const uint64_t used = limits.used_left / processes;
    const uint64_t left = used / 2 > BESIDE_BYTES ? used - BESIDE_BYTES : used / 2;
    if (left < budget)
        budget = left;
    const uint64_t addresses = limits.address_space / 10 * 9;
    return addresses < budget ? addresses : budget;
}
