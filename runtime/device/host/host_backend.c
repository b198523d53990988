/*
** The CPU backend: mmap without access reserves the address range, mprotect commits it, and
** "queued" work runs at once. The number of threads is OpenMP's, so OMP_NUM_THREADS is obeyed.
*/
#include "device/host/host_backend.h"
#include "device/host/host_limits.h"
#include <errno.h>
#include <malloc.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define GRANULARITY (UINT64_C(2) << 20)

/* `self` is the address of the device's one. */
static struct host_state {
    uint64_t reserved; /* bytes of addresses that the device's pool has reserved */
} host_instances[MB_HOST_DEVICES];

static void cpu_name(char *name, size_t bytes)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];
    snprintf(name, bytes, "CPU");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "model name", 10) && strchr(line, ':')) {
            char *text = strchr(line, ':') + 1;
            text += strspn(text, " \t");
            text[strcspn(text, "\n")] = '\0';
            snprintf(name, bytes, "%s", text);
            break;
        }
    if (file)
        fclose(file);
}

static int host_count(void)
{
    return MB_HOST_DEVICES;
}

static mb_status host_memory(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    const struct host_state *state = self;
    uint64_t total = mb_host_total();
    uint64_t available = mb_host_available();
    mb_host_limits limits; /* of a batch job or a container: they bind like the machine's memory */
    mb_host_limits_read(omp_get_max_threads(), state->reserved, &limits);
    if (limits.most < total)
        total = limits.most;
    if (limits.left < available)
        available = limits.left;
    *free_bytes = available;
    *total_bytes = total;
    return MB_STATUS_OK;
}

static mb_status host_describe(int index, mb_device_facts *facts)
{
    memset(facts, 0, sizeof *facts);
    uint64_t free_bytes;
    host_memory(&host_instances[index], &free_bytes, &facts->total_bytes);
    facts->threads = omp_get_max_threads();
    facts->commit_granularity = GRANULARITY;
    long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    facts->l2_bytes = l2 > 0 ? (uint64_t)l2 : UINT64_C(1) << 20;
    char name[96];
    cpu_name(name, sizeof name);
    snprintf(facts->name, sizeof facts->name, "%s, %d threads", name, facts->threads);
    return MB_STATUS_OK;
}

/* Under a limit of addresses all threads share one arena of the heap: the 64 MiB of addresses that
** each thread would reserve for its own are needed for their stacks. */
static void save_addresses(void)
{
#ifdef M_ARENA_MAX
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        mallopt(M_ARENA_MAX, 1);
#endif
}

static mb_status host_open(int index, void **self, mb_device_facts *facts)
{
    save_addresses();
    *self = &host_instances[index];
    return host_describe(index, facts);
}

static void host_close(void *self)
{
    (void)self;
}

static mb_status fail_reserve(uint64_t bytes, int cause)
{
    char text[32], own[64] = "";
    mb_host_limits limits;
    mb_host_limits_read(omp_get_max_threads(), 0, &limits);
    const uint64_t has = mb_host_figure("/proc/self/status", "VmSize:") << 10;
    const uint64_t mib = (has + 2 * limits.address_kept) >> 20;
    if (limits.address_most != UINT64_MAX)
        snprintf(own, sizeof own, "the program alone needs about %llu MiB; ",
                 (unsigned long long)(mib + 1));
    return mb_fail_bytes(
        MB_STATUS_MEMORY, bytes, 0,
        "no address space for a pool of %s: %s; %sraise the limit of the shell or of the batch "
        "job (ulimit -v, h_vmem, pvmem)",
        mb_bytes_format(bytes, text, sizeof text), strerror(cause), own);
}

static mb_status host_reserve(void *self, uint64_t bytes, void **base)
{
    struct host_state *state = self;
    mb_host_limits limits;
    mb_host_limits_read(omp_get_max_threads(), state->reserved, &limits);
    if (limits.address_space < bytes) /* leave addresses for the rest of the process */
        return fail_reserve(bytes, ENOMEM);
    /* One more granule, to align the range for huge pages. The slack has no memory. */
    char *address = mmap(NULL, bytes + GRANULARITY, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED)
        return fail_reserve(bytes, errno);
    uintptr_t aligned = ((uintptr_t)address + GRANULARITY - 1) / GRANULARITY * GRANULARITY;
    size_t head = aligned - (uintptr_t)address;
    if (head)
        munmap(address, head);
    if (GRANULARITY - head)
        munmap((char *)aligned + bytes, GRANULARITY - head);
    state->reserved += bytes;
    *base = (void *)aligned;
    return MB_STATUS_OK;
}

static void host_unreserve(void *self, void *base, uint64_t bytes)
{
    struct host_state *state = self;
    munmap(base, bytes);
    state->reserved -= bytes;
}

static mb_status host_commit(void *self, void *base, uint64_t offset, uint64_t bytes)
{
    (void)self;
    char *address = (char *)base + offset;
    if (mprotect(address, bytes, PROT_READ | PROT_WRITE) != 0)
        return mb_fail_bytes(MB_STATUS_MEMORY, bytes, 0, "the system refused %llu bytes: %s",
                             (unsigned long long)bytes, strerror(errno));
    madvise(address, bytes, MADV_HUGEPAGE); /* a hint: fewer page faults and TLB misses */
    return MB_STATUS_OK;
}

static void host_decommit(void *self, void *base, uint64_t offset, uint64_t bytes)
{
    (void)self;
    char *address = (char *)base + offset;
    madvise(address, bytes, MADV_DONTNEED);
    mprotect(address, bytes, PROT_NONE);
}

static mb_status host_copy(void *self, void *to, const void *from, uint64_t bytes)
{
    (void)self;
    const uint64_t piece = UINT64_C(4) << 20;
    if (bytes <= piece) {
        memcpy(to, from, bytes);
        return MB_STATUS_OK;
    }
    int64_t pieces = (int64_t)((bytes + piece - 1) / piece);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < pieces; i++) {
        uint64_t begin = (uint64_t)i * piece, size = bytes - begin < piece ? bytes - begin : piece;
        memcpy((char *)to + begin, (const char *)from + begin, size);
    }
    return MB_STATUS_OK;
}

static mb_status host_fill(void *self, void *device, int byte, uint64_t bytes)
{
    (void)self;
    if (bytes)
        memset(device, byte, bytes);
    return MB_STATUS_OK;
}

/* The interface of page-locked memory; copies on the host need no locked pages. As in the pool, a
** page is there when it is first used. */
static mb_status host_pin(void *self, uint64_t bytes, void **host)
{
    (void)self;
    void *address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED)
        return mb_fail_bytes(MB_STATUS_MEMORY, bytes, 0, "the system refused %llu bytes: %s",
                             (unsigned long long)bytes, strerror(errno));
    *host = address;
    return MB_STATUS_OK;
}

static void host_unpin(void *self, void *host, uint64_t bytes)
{
    (void)self;
    munmap(host, bytes);
}

/* Uses only the calling thread, because several threads copy at a time. */
static mb_status host_lane_copy(void *self, mb_lane lane, void *to, const void *from,
                                const mb_lane_rows *rows)
{
    (void)self, (void)lane;
    for (uint64_t row = 0; row < rows->count; row++)
        memcpy((char *)to + row * rows->to_pitch, (const char *)from + row * rows->from_pitch,
               rows->width);
    return MB_STATUS_OK;
}

static mb_status host_lane_wait(void *self, mb_lane lane, void *event)
{
    (void)self, (void)lane, (void)event;
    return MB_STATUS_OK; /* all queued work has run */
}

static mb_status host_event_create(void *self, void **event)
{
    (void)self;
    *event = calloc(1, sizeof(struct timespec));
    return *event ? MB_STATUS_OK : mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for an event");
}

static void host_event_destroy(void *self, void *event)
{
    (void)self;
    free(event);
}

static mb_status host_event_record(void *self, mb_lane lane, void *event)
{
    (void)self, (void)lane;
    clock_gettime(CLOCK_MONOTONIC, event);
    return MB_STATUS_OK;
}

static mb_status host_event_elapsed_ms(void *self, void *begin, void *end, double *ms)
{
    (void)self;
    const struct timespec *a = begin, *b = end;
    *ms = (double)(b->tv_sec - a->tv_sec) * 1e3 + (double)(b->tv_nsec - a->tv_nsec) * 1e-6;
    return MB_STATUS_OK;
}

static void host_fft_library(void *self, char *text, size_t bytes)
{
    (void)self;
    snprintf(text, bytes, "%s", mb_host_fft_version());
}

/* A kernel skips the rest of its work when the cancel flag is raised, so its output is not a
** result. */
static mb_status host_launch(void *self, mb_op_kernel kernel, const mb_op_call *call)
{
    (void)self;
    MB_TRY(kernel(call));
    return mb_cancel_check();
}

const mb_backend mb_host_backend = {
    .abi = MB_BACKEND_ABI,
    .name = "host",
    .count = host_count,
    .describe = host_describe,
    .open = host_open,
    .close = host_close,
    .memory = host_memory,
    .reserve = host_reserve,
    .unreserve = host_unreserve,
    .commit = host_commit,
    .decommit = host_decommit,
    .upload = host_copy,
    .download = host_copy,
    .copy = host_copy,
    .fill = host_fill,
    .pin = host_pin,
    .unpin = host_unpin,
    .lane_copy = host_lane_copy,
    .lane_wait = host_lane_wait,
    .event_create = host_event_create,
    .event_destroy = host_event_destroy,
    .event_record = host_event_record,
    .event_elapsed_ms = host_event_elapsed_ms,
    .fft_create = mb_host_fft_create,
    .fft_destroy = mb_host_fft_destroy,
    .fft_exec = mb_host_fft_exec,
    .launch = host_launch,
    .fft_library = host_fft_library,
};
