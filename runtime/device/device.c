/*
** The device registry, and the loading of the CUDA plug-in. Opening and closing take one lock.
*/
#include "device/device.h"
#include "device/host/host_backend.h"
#include "device/host/host_limits.h"
#include "device/numa.h"
#include "device/planned/planned_backend.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_CUDA 32
#define MAX_RECORDS 8
#define FIRST_CUDA MB_HOST_DEVICES
#define FIRST_PLANNED (FIRST_CUDA + MAX_CUDA)
#define MAX_DEVICES (FIRST_PLANNED + MAX_RECORDS * MB_PLANNED_DEVICES)
#define PLANNED "planned:"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mb_device *opened[MAX_DEVICES]; /* host devices, then cuda:n, then planned ones */
static const mb_backend *cuda;
static bool cuda_looked;
static int cuda_count;
static char cuda_problem[400];
static char plugin_folder[4000];
static const mb_named_kernel *operators;
static int operator_count;

static const mb_core_api core_api = {
    .abi = MB_BACKEND_ABI,
    .fail = mb_fail,
    .cancelled = mb_cancelled,
};

void mb_device_set_plugin_folder(const char *folder)
{
    snprintf(plugin_folder, sizeof plugin_folder, "%s", folder);
}

static int processes_here = 1;

void mb_device_set_sharing(int processes)
{
    processes_here = processes;
}

int mb_device_sharing(void)
{
    return processes_here;
}

/* The processes that share a device's memory. */
static uint64_t sharing(const mb_backend *backend)
{
    if (backend == cuda && cuda_count > 0)
        return (uint64_t)((processes_here + cuda_count - 1) / cuda_count);
    return backend == &mb_host_backend ? (uint64_t)processes_here : 1;
}

void mb_device_set_operators(const mb_named_kernel *list, int count)
{
    operators = list;
    operator_count = count;
}

/* Loads the plug-in once; leaves the reason when there is no CUDA device. */
static void look_for_cuda(void)
{
    if (cuda_looked)
        return;
    cuda_looked = true;
    char path[4096];
    const char *given = getenv("MOONBEAM_CUDA_PLUGIN");
    if (given)
        snprintf(path, sizeof path, "%s", given);
    else
        snprintf(path, sizeof path, "%s%smoonbeam_cuda.so", plugin_folder,
                 *plugin_folder ? "/" : "");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(cuda_problem, sizeof cuda_problem, "no CUDA plug-in: %s", dlerror());
        return;
    }
    mb_backend_entry_function entry;
    *(void **)&entry = dlsym(library, MB_BACKEND_ENTRY);
    const mb_backend *backend = entry ? entry(&core_api) : NULL;
    if (!backend || backend->abi != MB_BACKEND_ABI) {
        snprintf(
            cuda_problem, sizeof cuda_problem,
            "%s was built for another version of Moonbeam; rebuild the program and the plug-in",
            path);
        return;
    }
    int count = backend->count();
    if (count <= 0) {
        snprintf(cuda_problem, sizeof cuda_problem, "the CUDA driver reports no device");
        return;
    }
    cuda = backend;
    cuda_count = count < MAX_CUDA ? count : MAX_CUDA;
}

int mb_device_count(void)
{
    pthread_mutex_lock(&lock);
    look_for_cuda();
    int count = 1 + cuda_count;
    pthread_mutex_unlock(&lock);
    return count;
}

mb_status mb_device_id(int number, char *id, size_t bytes)
{
    if (number < 0 || number >= mb_device_count())
        return mb_fail(MB_STATUS_ARGUMENT, "device", "device number %d of %d", number,
                       mb_device_count());
    if (number == 0)
        snprintf(id, bytes, "host");
    else
        snprintf(id, bytes, "cuda:%d", number - 1);
    return MB_STATUS_OK;
}

const char *mb_device_cuda_problem(void)
{
    mb_device_count();
    return cuda_problem;
}

/* ---- the source of the pool's memory ---- */

static mb_status source_reserve(void *self, uint64_t bytes, void **base)
{
    mb_device *d = self;
    return d->backend->reserve(d->self, bytes, base);
}

static void source_unreserve(void *self, void *base, uint64_t bytes)
{
    mb_device *d = self;
    d->backend->unreserve(d->self, base, bytes);
}

static mb_status source_commit(void *self, void *base, uint64_t offset, uint64_t bytes)
{
    return mb_device_commit(self, base, offset, bytes);
}

static void source_decommit(void *self, void *base, uint64_t offset, uint64_t bytes)
{
    mb_device *d = self;
    MB_KEEP_ERROR;
    if (!mb_device_lost(d))
        (void)mb_device_sync(d); /* queued work may still use the memory */
    d->backend->decommit(d->self, base, offset, bytes);
}

static mb_status source_fill(void *self, void *address, int byte, uint64_t bytes)
{
    return mb_device_fill(self, address, byte, bytes);
}

static mb_status source_read(void *self, void *host, const void *address, uint64_t bytes)
{
    return mb_device_download(self, host, address, bytes);
}

/* ---- opening and closing ---- */

static mb_op_kernel find_kernel(const mb_named_kernel *list, const char *name)
{
    while (list->name && strcmp(list->name, name) != 0)
        list++;
    return list->run;
}

static mb_status find_kernels(const mb_backend *backend, mb_op_kernel **out)
{
    mb_op_kernel *kernels = calloc((size_t)operator_count + 1, sizeof *kernels);
    if (!kernels)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for a device's kernels");
    for (int i = 0; i < operator_count; i++)
        kernels[i] =
            backend->kernels ? find_kernel(backend->kernels, operators[i].name) : operators[i].run;
    *out = kernels;
    return MB_STATUS_OK;
}

void mb_device_locate(mb_device *device, const char *root, const char *pci)
{
    mb_processors allowed;
    mb_numa *numa = *pci ? malloc(sizeof *numa) : NULL;
    if (numa && !(mb_processors_allowed(&allowed) && mb_numa_find(root, pci, &allowed, numa))) {
        free(numa);
        numa = NULL;
    }
    free(device->numa);
    device->numa = numa;
}

/* "host", "host:1", "cuda:0", "planned:h200", "planned:h200:1". `copy` is for planned devices. */
static void name_device(mb_device *device, int copy)
{
    char *id = device->id;
    const size_t bytes = sizeof device->id;
    if (device->record && copy == 0)
        snprintf(id, bytes, PLANNED "%s", device->record->name);
    else if (device->record)
        snprintf(id, bytes, PLANNED "%s:%d", device->record->name, copy);
    else if (device->backend == &mb_host_backend && device->index == 0)
        snprintf(id, bytes, "host");
    else
        snprintf(id, bytes, "%s:%d", device->backend->name, device->index);
}

static mb_status open_device(const mb_backend *backend, int index, int copy, mb_device **out)
{
    mb_device *device = calloc(1, sizeof *device);
    if (!device)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for a device's record");
    device->backend = backend;
    device->index = index;
    device->pinned.limit = MB_PINNED_LIMIT;
    if (backend == &mb_planned_backend)
        device->record = mb_device_record_at(index);
    name_device(device, copy);
    uint64_t free_bytes = 0, total_bytes = 0;
    mb_status status = backend->open(index, &device->self, &device->facts);
    if (status != MB_STATUS_OK)
        goto fail;
    status = backend->memory(device->self, &free_bytes, &total_bytes);
    if (status != MB_STATUS_OK)
        goto fail_open;
    const mb_pool_source source = {
        .self = device,
        .name = device->id,
        .reserve = source_reserve,
        .unreserve = source_unreserve,
        .commit = source_commit,
        .decommit = source_decommit,
        .granularity = device->facts.commit_granularity,
        /* a limit of the process on the memory that it uses is none on addresses */
        .capacity = backend == &mb_host_backend ? mb_host_total() : total_bytes,
        .host_memory = backend == &mb_host_backend,
        .fill = source_fill,
        .read = source_read,
    };
    device->default_budget = backend == &mb_host_backend
                                 ? mb_host_budget(device->facts.threads, 0, sharing(backend))
                                 : free_bytes / sharing(backend) / 10 * 9;
    status = mb_pool_create(&source, device->default_budget, &device->pool);
    if (status != MB_STATUS_OK)
        goto fail_open;
    status = mb_fft_cache_create(device, &device->ffts);
    if (status != MB_STATUS_OK)
        goto fail_pool;
    status = find_kernels(backend, &device->kernels);
    if (status != MB_STATUS_OK)
        goto fail_cache;
    mb_device_locate(device, "", device->facts.pci);
    *out = device;
    return MB_STATUS_OK;
fail_cache:
    mb_fft_cache_destroy(device->ffts);
fail_pool:
    mb_pool_destroy(device->pool);
fail_open:
    backend->close(device->self);
fail:
    free(device);
    return status;
}

static uint64_t close_device(mb_device *device)
{
    if (__atomic_load_n(&device->loss.orphans, __ATOMIC_ACQUIRE) > 0)
        return 0; /* threads that are left behind on it still use its record */
    mb_fft_cache_drop(device, 0);
    mb_fft_cache_destroy(device->ffts);
    uint64_t left = mb_pool_destroy(device->pool);
    device->backend->close(device->self);
    free(device->kernels);
    free(device->numa);
    free(device);
    return left;
}

/* For the kind "cuda": "cuda" -> 0 and "cuda:n" -> n; -1 for anything else. */
static int number_of(const char *id, const char *kind)
{
    const size_t length = strlen(kind);
    if (strncmp(id, kind, length) != 0)
        return -1;
    id += length;
    if (!*id)
        return 0;
    char *end;
    long n = id[0] == ':' && id[1] >= '0' && id[1] <= '9' ? strtol(id + 1, &end, 10) : -1;
    return n >= 0 && n < 1000 && !*end ? (int)n : -1;
}

/* "planned:h200, planned:a100" */
static const char *planned_names(char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < mb_device_record_count() && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s" PLANNED "%s", i ? ", " : "",
                                 mb_device_record_at(i)->name);
    return text;
}

/* Device `number` of a backend, in the slot `place`. */
static mb_status open_slot(const mb_backend *backend, int number, int place, mb_device **out)
{
    mb_device **slot = &opened[place];
    if (!*slot)
        MB_TRY(open_device(backend, number, (place - FIRST_PLANNED) % MB_PLANNED_DEVICES, slot));
    *out = *slot;
    return MB_STATUS_OK;
}

/* What a planned device is named without "planned:": "h200", or "h200:1". Sets the number of the
** record, or -1, and which of its devices it is. */
static void parse_planned(const char *name, int *record, int *copy)
{
    char model[24];
    const char *colon = strrchr(name, ':');
    *copy = colon ? number_of(colon, "") : 0;
    snprintf(model, sizeof model, "%.*s", colon ? (int)(colon - name) : (int)sizeof model, name);
    *record = *copy < 0 ? -1 : mb_device_record_find(model);
}

static mb_status open_planned(const char *name, mb_device **out)
{
    char known[200];
    int record, copy;
    parse_planned(name, &record, &copy);
    if (record < 0 || record >= MAX_RECORDS)
        return mb_fail(MB_STATUS_ARGUMENT, "device",
                       "no record of \"%s\"; devices that can be planned for: %s", name,
                       planned_names(known, sizeof known));
    if (copy >= MB_PLANNED_DEVICES)
        return mb_fail(MB_STATUS_ARGUMENT, "device",
                       "no device " PLANNED "%s: devices of one record are numbered 0 to %d", name,
                       MB_PLANNED_DEVICES - 1);
    return open_slot(&mb_planned_backend, record,
                     FIRST_PLANNED + record * MB_PLANNED_DEVICES + copy, out);
}

static mb_status open_host(const char *id, int number, mb_device **out)
{
    if (number >= MB_HOST_DEVICES)
        return mb_fail(MB_STATUS_DEVICE, "device",
                       "no device %s: host devices are \"host\" and \"host:1\" to \"host:%d\"", id,
                       MB_HOST_DEVICES - 1);
    return open_slot(&mb_host_backend, number, number, out);
}

static mb_status fail_no_cuda(const char *id)
{
    char known[200], last[16];
    planned_names(known, sizeof known);
    if (!cuda)
        return mb_fail(MB_STATUS_DEVICE, "device", "no device %s: %s; choose host, or plan for %s",
                       id, cuda_problem, known);
    snprintf(last, sizeof last, "cuda:%d", cuda_count - 1);
    return mb_fail(MB_STATUS_DEVICE, "device",
                   "no device %s: this machine has %s%s; choose cuda:0, or plan for %s", id,
                   cuda_count > 1 ? "cuda:0 to " : last, cuda_count > 1 ? last : " only", known);
}

/* Is there such a device? Looks for the plug-in. */
static mb_status find_cuda(const char *id, int number)
{
    look_for_cuda();
    return number < cuda_count ? MB_STATUS_OK : fail_no_cuda(id);
}

static mb_status open_cuda(const char *id, int number, mb_device **out)
{
    MB_TRY(find_cuda(id, number));
    return open_slot(cuda, number, FIRST_CUDA + number, out);
}

mb_status mb_device_describe(int number, mb_device_facts *facts)
{
    char id[24];
    MB_TRY(mb_device_id(number, id, sizeof id));
    pthread_mutex_lock(&lock);
    const mb_status status =
        number == 0 ? mb_host_backend.describe(0, facts) : cuda->describe(number - 1, facts);
    pthread_mutex_unlock(&lock);
    return status;
}

mb_status mb_device_open(const char *id, mb_device **out)
{
    const bool planned = strncmp(id, PLANNED, sizeof PLANNED - 1) == 0;
    const int host_number = number_of(id, "host"), cuda_number = number_of(id, "cuda");
    if (strchr(id, ',') || strcmp(id, "all") == 0)
        return mb_fail(MB_STATUS_ARGUMENT, "device",
                       "\"%s\" names several devices, where one is needed; name one, such as "
                       "\"cuda:0\"",
                       id);
    if (!planned && host_number < 0 && cuda_number < 0) {
        const char *hint = strcasecmp(id, "cpu") == 0   ? ": the processor is \"host\""
                           : strcasecmp(id, "gpu") == 0 ? ": the first GPU is \"cuda:0\""
                                                        : "";
        return mb_fail(MB_STATUS_ARGUMENT, "device",
                       "unknown device \"%s\"%s; valid names are \"host\", \"host:1\", \"cuda:0\", "
                       "\"cuda:1\", ...",
                       id, hint);
    }
    pthread_mutex_lock(&lock);
    mb_status status = planned            ? open_planned(id + sizeof PLANNED - 1, out)
                       : host_number >= 0 ? open_host(id, host_number, out)
                                          : open_cuda(id, cuda_number, out);
    pthread_mutex_unlock(&lock);
    return status;
}

uint64_t mb_devices_close(void)
{
    uint64_t left = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_DEVICES; i++)
        if (opened[i]) {
            left += close_device(opened[i]);
            opened[i] = NULL;
        }
    pthread_mutex_unlock(&lock);
    return left;
}
