/*
** Reads the files of /sys that tell where devices and processors are.
*/
#define _GNU_SOURCE
#include "device/numa.h"
#include <ctype.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIST_BYTES 4096 /* of a file under /sys: one page */

/* ---- sets of processors ---- */

static bool has(const mb_processors *set, long i)
{
    return set->bits[i / 64] >> (i % 64) & 1;
}

static bool is_empty(const mb_processors *set)
{
    for (size_t i = 0; i < sizeof set->bits / sizeof *set->bits; i++)
        if (set->bits[i])
            return false;
    return true;
}

/* Reads a number below MB_MOST_PROCESSORS; -1 if there is none. */
static long read_number(const char **text)
{
    char *end;
    if (!isdigit((unsigned char)**text))
        return -1;
    const long number = strtol(*text, &end, 10);
    *text = end;
    return number < MB_MOST_PROCESSORS ? number : -1;
}

bool mb_processors_parse(const char *list, mb_processors *out)
{
    memset(out, 0, sizeof *out);
    while (isspace((unsigned char)*list))
        list++;
    while (*list) {
        const long first = read_number(&list);
        long last = first;
        if (*list == '-') {
            list++;
            last = read_number(&list);
        }
        if (first < 0 || last < first)
            return false;
        for (long i = first; i <= last; i++)
            out->bits[i / 64] |= UINT64_C(1) << (i % 64);
        while (isspace((unsigned char)*list))
            list++;
        if (*list == ',')
            list++;
        else if (*list)
            return false;
    }
    return true;
}

const char *mb_processors_text(const mb_processors *processors, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (long first = 0; first < MB_MOST_PROCESSORS && used < bytes; first++) {
        if (!has(processors, first))
            continue;
        long last = first;
        while (last + 1 < MB_MOST_PROCESSORS && has(processors, last + 1))
            last++;
        used += (size_t)snprintf(text + used, bytes - used, last > first ? "%s%ld-%ld" : "%s%ld",
                                 used ? "," : "", first, last);
        first = last;
    }
    return text;
}

/* The processors of the calling thread; none if the system does not say. The kernel's sets are
** arrays of long, in which processor i has the same bit as here. */
static void of_thread(mb_processors *out)
{
    memset(out, 0, sizeof *out);
    if (sched_getaffinity(0, sizeof *out, (cpu_set_t *)(void *)out) != 0)
        memset(out, 0, sizeof *out);
}

static pthread_once_t asked = PTHREAD_ONCE_INIT;
static mb_processors of_process;

/* With OMP_PROC_BIND, OpenMP has bound the first thread to one place before main begins; its places
** together are what the process may use. */
static void ask(void)
{
    of_thread(&of_process);
    for (int place = 0; place < omp_get_num_places(); place++) {
        const int count = omp_get_place_num_procs(place);
        int *ids = malloc((size_t)count * sizeof *ids + 1);
        if (!ids)
            return;
        omp_get_place_proc_ids(place, ids);
        for (int i = 0; i < count; i++)
            if (ids[i] >= 0 && ids[i] < MB_MOST_PROCESSORS)
                of_process.bits[ids[i] / 64] |= UINT64_C(1) << (ids[i] % 64);
        free(ids);
    }
}

bool mb_processors_allowed(mb_processors *out)
{
    pthread_once(&asked, ask);
    *out = of_process;
    return !is_empty(out);
}

static int most_processors = MB_MOST_PROCESSORS;

void mb_processors_limit(int most)
{
    most_processors = most;
}

int mb_processors_count(void)
{
    mb_processors allowed;
    int count = 0;
    const bool known = mb_processors_allowed(&allowed);
    for (long i = 0; known && i < MB_MOST_PROCESSORS; i++)
        count += has(&allowed, i);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const int all = count > 0 ? count : online > 0 ? (int)online : 1;
    return all < most_processors ? all : most_processors;
}

/* ---- /sys ---- */

/* The text of a file; false if it cannot be read whole. */
static bool read_text(const char *root, const char *path, char *text, size_t bytes)
{
    char name[512];
    if (snprintf(name, sizeof name, "%s%s", root, path) >= (int)sizeof name)
        return false;
    FILE *file = fopen(name, "r");
    if (!file)
        return false;
    const size_t count = fread(text, 1, bytes, file);
    const bool whole = !ferror(file) && count < bytes;
    fclose(file);
    text[whole ? count : 0] = '\0';
    return whole;
}

/* A file with a list of numbers. */
static bool read_list(const char *root, const char *path, mb_processors *out)
{
    char text[LIST_BYTES + 1];
    return read_text(root, path, text, sizeof text) && mb_processors_parse(text, out);
}

/* The node of a PCI device; below 0: unknown. CUDA writes addresses in upper case, and libraries
** beside it write eight digits before the first colon. */
static int node_of(const char *root, const char *pci)
{
    char address[24], path[80], text[32], *end;
    const char *colon = strchr(pci, ':');
    if (colon && colon - pci == 8 && strncmp(pci, "0000", 4) == 0)
        pci += 4;
    snprintf(address, sizeof address, "%s", pci);
    for (char *c = address; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", address);
    if (!*address || strchr(address, '/') || !read_text(root, path, text, sizeof text))
        return -1;
    const long node = strtol(text, &end, 10);
    return end != text && node >= 0 && node < MB_MOST_PROCESSORS ? (int)node : -1;
}

/* Are there several nodes? */
static bool has_nodes(const char *root)
{
    mb_processors nodes;
    int count = 0;
    if (!read_list(root, "/sys/devices/system/node/online", &nodes))
        return false;
    for (long i = 0; i < MB_MOST_PROCESSORS; i++)
        count += has(&nodes, i);
    return count > 1;
}

bool mb_numa_find(const char *root, const char *pci, const mb_processors *allowed, mb_numa *out)
{
    char path[64];
    mb_processors near, online;
    const int node = node_of(root, pci);
    if (node < 0 || !has_nodes(root))
        return false;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    if (!read_list(root, path, &near))
        return false;
    if (!read_list(root, "/sys/devices/system/cpu/online", &online))
        online = near;
    out->node = node;
    for (size_t i = 0; i < sizeof near.bits / sizeof *near.bits; i++)
        out->processors.bits[i] = near.bits[i] & online.bits[i] & allowed->bits[i];
    return !is_empty(&out->processors);
}

/* ---- threads ---- */

void mb_numa_enter(const mb_numa *numa, mb_processors *before)
{
    if (!numa)
        return;
    of_thread(before);
    if (!is_empty(before))
        (void)sched_setaffinity(0, sizeof numa->processors,
                                (const cpu_set_t *)(const void *)&numa->processors);
}

void mb_numa_stay(const mb_numa *numa)
{
    mb_processors before, all;
    if (numa)
        mb_numa_enter(numa, &before);
    else if (mb_processors_allowed(&all))
        (void)sched_setaffinity(0, sizeof all, (const cpu_set_t *)(const void *)&all);
}

void mb_numa_leave(const mb_numa *numa, const mb_processors *before)
{
    if (numa && !is_empty(before))
        (void)sched_setaffinity(0, sizeof *before, (const cpu_set_t *)(const void *)before);
}
