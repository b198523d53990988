/*
** The process that looks at an HDF5 file, under limits of time and memory. It reads all the
** structure, the small values, and a row of each dataset.
*/
#define _GNU_SOURCE
#include "files/h5/h5whole.h"
#include "core/grow.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define CPU_SECONDS 2      /* of one call of libhdf5, or little more: then it hangs */
#define ENOUGH_SECONDS 0.5 /* of looking at a file with very many objects */
#define MOST_DEPTH 64
#define VALUE_ELEMENTS 65536
#define ROW_BYTES ((uint64_t)1 << 20)
#define CHUNK_BYTES ((uint64_t)16 << 20)

typedef struct look {
    mb_h5 *file;
    bool memory; /* an allocation was refused */
    int depth;
    h5_visited visited;
} look;

static bool enough(const look *l)
{
    return l->memory || (double)clock() / CLOCKS_PER_SEC > ENOUGH_SECONDS;
}

/* An error is not this process's to tell, but for one. */
static bool went_well(look *l, mb_status status)
{
    if (status == MB_STATUS_OK)
        return true;
    l->memory = l->memory || status == MB_STATUS_MEMORY || mb_h5_lacked_memory();
    return false;
}

static void look_at_attributes(look *l, const char *path)
{
    const mb_h5_value *value;
    char **names;
    int64_t count;
    if (!went_well(l, mb_h5_attribute_names(l->file, path, &names, &count)))
        return;
    char **copies = calloc((size_t)count + 1, sizeof *copies);
    for (int64_t i = 0; copies && i < count; i++)
        copies[i] = strdup(names[i]); /* they are the file's until the next call */
    for (int64_t i = 0; copies && i < count && !enough(l); i++)
        if (copies[i])
            went_well(l, mb_h5_attribute_read(l->file, path, copies[i], &value));
    for (int64_t i = 0; copies && i < count; i++)
        free(copies[i]);
    free(copies);
}

/* One row, so that the conversion and the filters of its chunk are tried. */
static void look_at_row(look *l, mb_h5_dataset *dataset)
{
    const mb_h5_info *info = mb_h5_dataset_info(dataset);
    mb_range ranges[MB_H5_MAX_RANK];
    uint64_t row = mb_dtype_bytes(info->dtype), chunk = row;
    for (int axis = 0; axis < info->rank; axis++) {
        if (info->dims[axis] < 1)
            return;
        const bool last = axis == info->rank - 1;
        ranges[axis] = (mb_range){.count = last ? info->dims[axis] : 1, .step = 1};
        row = last ? mb_bytes_mul(row, (uint64_t)info->dims[axis]) : row;
        chunk = info->chunked ? mb_bytes_mul(chunk, (uint64_t)info->chunks[axis]) : 0;
    }
    if (info->empty || row > ROW_BYTES || chunk > CHUNK_BYTES)
        return;
    void *memory = malloc(row);
    if (memory)
        went_well(l, mb_h5_dataset_read_host(dataset, ranges, info->dtype, memory));
    free(memory);
}

static void look_at_dataset(look *l, const char *path)
{
    const int64_t(*runs)[2];
    const mb_h5_value *value;
    const char *why = NULL;
    mb_h5_dataset *dataset = NULL;
    int64_t count;
    if (!went_well(l, mb_h5_dataset_open(l->file, path, &dataset)))
        return;
    const mb_h5_info info = *mb_h5_dataset_info(dataset);
    const uint64_t elements = mb_h5_product(info.dims, info.rank);
    if (went_well(l, mb_h5_dataset_missing(dataset, &runs, &count, &why)) && count == 0 &&
        info.numeric)
        look_at_row(l, dataset);
    mb_h5_dataset_destroy(dataset);
    if (count == 0 && (info.text || (info.numeric && elements <= VALUE_ELEMENTS)))
        went_well(l, mb_h5_value_read(l->file, path, &value));
}

typedef struct name_list {
    char **names;
    int64_t count, room;
} name_list;

static herr_t take_link(hid_t group, const char *name, const H5L_info_t *link, void *user)
{
    name_list *list = user;
    (void)group, (void)link;
    char **names = mb_grow(list->names, list->count, &list->room, sizeof *names);
    if (!names)
        return -1;
    list->names = names;
    list->names[list->count] = strdup(name);
    return list->names[list->count++] ? 0 : -1;
}

static void look_at_object(look *l, const char *path);

static void look_at_members(look *l, const char *path)
{
    name_list list = {0};
    H5_OWNED hid_t group = H5Gopen2(l->file->id, path, l->file->links);
    if (group < 0)
        return;
    if (mb_h5_enter(&l->visited, group) && l->depth < MOST_DEPTH &&
        H5Lexists(group, "\177", H5P_DEFAULT) >= 0)
        H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, take_link, &list);
    l->depth++;
    for (int64_t i = 0; i < list.count; i++) {
        char *inner = NULL;
        if (!enough(l) && list.names[i] &&
            asprintf(&inner, "%s/%s", strcmp(path, "/") == 0 ? "" : path, list.names[i]) >= 0)
            look_at_object(l, inner);
        free(inner);
        free(list.names[i]);
    }
    l->depth--;
    free(list.names);
}

static void look_at_object(look *l, const char *path)
{
    mb_h5_info info;
    if (!went_well(l, mb_h5_describe(l->file, path, &info)))
        return;
    look_at_attributes(l, path);
    if (info.kind == MB_H5_DATASET)
        look_at_dataset(l, path);
    else if (info.kind == MB_H5_GROUP)
        look_at_members(l, path);
}

static void limit(int what, rlim_t soft, rlim_t hard)
{
    struct rlimit now;
    if (getrlimit(what, &now) != 0)
        return;
    now.rlim_cur = soft < now.rlim_cur ? soft : now.rlim_cur;
    now.rlim_max = hard < now.rlim_max ? hard : now.rlim_max;
    setrlimit(what, &now);
}

static void set_limits(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* What libhdf5 takes from beyond its memory is no small number that happens to be harmless
    ** here. */
    mallopt(M_PERTURB, 0x55);
    limit(RLIMIT_CORE, 0, 0);
    limit(RLIMIT_CPU, CPU_SECONDS, CPU_SECONDS + 2);
#ifndef __SANITIZE_ADDRESS__ /* which takes 20 TiB of addresses */
    unsigned long long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm && fscanf(statm, "%llu", &pages) == 1) {
        const rlim_t most = pages * (rlim_t)sysconf(_SC_PAGESIZE) + MB_H5_PROBE_BYTES;
        limit(RLIMIT_AS, most, most);
    }
    if (statm)
        fclose(statm);
#endif
}

int mb_h5_probe_child(const char *path, const char *flags)
{
    const mb_h5_access how = {.allow_external = flags && flags[0] == 'e'};
    look l = {0};
    set_limits();
    if (went_well(&l, mb_h5_open_unprobed(path, &how, &l.file)))
        look_at_object(&l, "/");
    /* What libhdf5 would do at the end is not done: this process has said what it has to say. */
    _exit(l.memory ? MB_H5_PROBE_MEMORY : MB_H5_PROBE_GOOD);
}
