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

#define KEPT_BYTES                                                                                 \
    (UINT64_C(64) << 20) /* kept of a limited address space for the heap and libraries */
#define THREAD_BYTES (UINT64_C(16) << 20)  /* kept for the stack and the arena of each thread */
#define NO_LIMIT_BYTES (UINT64_C(1) << 60) /* version 1 writes "no limit" as a larger number */

/* The files of one version. */
typedef struct group_files {
    const char *limits[2]; /* each a limit; NULL: none */
    const char *used;
    const char *cache[2]; /* keys of memory.stat: page cache that can be reclaimed */
} group_files;

static const group_files VERSION_2 = {
    {"memory.max", "memory.high"}, "memory.current", {"inactive_file ", "active_file "}};
static const group_files VERSION_1 = {{"memory.limit_in_bytes", NULL},
                                      "memory.usage_in_bytes",
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

/* The limits of the group in `folder`, an absolute path without the root. */
static void read_group(const char *root, const char *folder, const group_files *files,
                       mb_host_limits *limits)
{
    char path[4400];
    for (int i = 0; i < 2 && files->limits[i]; i++) {
        snprintf(path, sizeof path, "%s%s/%s", root, folder, files->limits[i]);
        const uint64_t limit = read_limit(path);
        if (limit == UINT64_MAX)
            continue;
        snprintf(path, sizeof path, "%s%s/%s", root, folder, files->used);
        uint64_t used = mb_host_figure(path, "");
        snprintf(path, sizeof path, "%s%s/memory.stat", root, folder);
        uint64_t cache =
            mb_host_figure(path, files->cache[0]) + mb_host_figure(path, files->cache[1]);
        used = used > cache ? used - cache : 0;
        snprintf(path, sizeof path, "%s/%s", folder, files->limits[i]);
        lower(limits, limit, limit > used ? limit - used : 0, path);
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
    *limits = (mb_host_limits){UINT64_MAX, UINT64_MAX, UINT64_MAX, ""};
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

/* What a resource limit leaves: the limit without the bytes that count against it now (a line of
** /proc/self/status; `own` of them are free again) and without what the rest of the process
** needs. */
static uint64_t left_of(uint64_t limit, const char *used_key, uint64_t own, int threads)
{
    const uint64_t kept = KEPT_BYTES + THREAD_BYTES * (uint64_t)threads;
    uint64_t used = mb_host_figure("/proc/self/status", used_key) * 1024;
    used = used > own ? used - own : 0;
    const uint64_t left = limit > used ? limit - used : 0;
    return left / 2 > kept ? left - kept : left / 2;
}

void mb_host_limits_read(int threads, uint64_t reserved, mb_host_limits *limits)
{
    struct rlimit limit;
    mb_host_limits_of_groups("", limits);
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        limits->address_space = left_of(limit.rlim_cur, "VmSize:", reserved, threads);
        lower(limits, limit.rlim_cur, limits->address_space, "RLIMIT_AS (ulimit -v)");
    }
    if (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        lower(limits, limit.rlim_cur, left_of(limit.rlim_cur, "VmData:", 0, threads),
              "RLIMIT_DATA (ulimit -d)");
}
