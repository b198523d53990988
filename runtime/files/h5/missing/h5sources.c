/*
** The sources of virtual datasets. libhdf5 reads the fill value, without a word, for what no source
** gives: where a file or a dataset is missing or cannot be read, where it is smaller than its
** part, is itself incomplete, and where no part of another file belongs. So all of them are
** looked at first.
**
** A mapping gives a selection of the source to a selection of the virtual dataset. What matters
** here is how many elements each index of the axis of frames (0, mostly) gets. A name may hold "%b",
** the number of a block, where the selection repeats without end along one axis; "%%" is "%".
*/
#define _GNU_SOURCE
#include "files/h5/missing/h5missing.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DEPTH 4 /* virtual datasets of virtual datasets */
#define MOST_FRAMES ((int64_t)1 << 22)
#define MOST_STEPS                                                                                 \
    ((int64_t)1 << 28) /* of adding up; a map of all frames for each frame ends here */
#define MOST_SOURCES 1000000

typedef struct virtual_map {
    mb_h5 *file;
    const char *name; /* of the file with the virtual dataset */
    hid_t owner;      /* that file */
    const mb_h5_info *info;
    h5_gaps *gaps;
    int64_t *elements; /* what each frame gets: each index of gaps->axis */
    int64_t frames, steps, sources;
    int depth;
} virtual_map;

/* A regular selection of the virtual dataset, clipped to its extents. */
typedef struct part {
    hsize_t start[MB_H5_MAX_RANK], stride[MB_H5_MAX_RANK], count[MB_H5_MAX_RANK],
        block[MB_H5_MAX_RANK];
    int endless; /* the axis along which the selection has no end, or -1 */
} part;

/* Which elements of a source belong to which part. */
typedef struct mapping {
    hid_t selection; /* of the source */
    part to;
} mapping;

/* ---- what a mapping covers ---- */

static void clip(part *p, const mb_h5_info *info)
{
    p->endless = -1;
    for (int axis = 0; axis < info->rank; axis++) {
        const hsize_t extent = (hsize_t)info->dims[axis];
        if (p->stride[axis] == 0)
            p->stride[axis] = 1;
        if (p->count[axis] == H5S_UNLIMITED || p->block[axis] == H5S_UNLIMITED)
            p->endless = axis;
        if (p->block[axis] == H5S_UNLIMITED)
            p->block[axis] = extent > p->start[axis] ? extent - p->start[axis] : 0;
        if (p->count[axis] == H5S_UNLIMITED)
            p->count[axis] = extent > p->start[axis]
                                 ? (extent - p->start[axis] + p->stride[axis] - 1) / p->stride[axis]
                                 : 0;
    }
}

/* The selection of a mapping; one that is not regular counts as its bounds. */
static bool take_part(hid_t space, const mb_h5_info *info, part *p)
{
    hsize_t last[MB_H5_MAX_RANK];
    if (H5Sget_select_type(space) == H5S_SEL_NONE)
        return false;
    if (H5Sget_select_type(space) == H5S_SEL_HYPERSLABS && H5Sis_regular_hyperslab(space) > 0) {
        if (H5Sget_regular_hyperslab(space, p->start, p->stride, p->count, p->block) < 0)
            return false;
    } else {
        if (H5Sget_select_bounds(space, p->start, last) < 0)
            return false;
        for (int axis = 0; axis < info->rank; axis++) {
            p->stride[axis] = p->count[axis] = 1;
            p->block[axis] = last[axis] - p->start[axis] + 1;
        }
    }
    clip(p, info);
    return true;
}

/* How many elements a part takes along all axes but `without` (-1: all); UINT64_MAX without an
** end. */
static uint64_t elements_of(const part *p, int without, int rank)
{
    uint64_t elements = 1;
    for (int axis = 0; axis < rank; axis++)
        if (axis != without)
            elements = mb_bytes_mul(elements, mb_bytes_mul(p->count[axis], p->block[axis]));
    return elements;
}

/* Adds what the part gives to each of its frames. */
static void cover(virtual_map *v, const part *p)
{
    const int axis = v->gaps->axis;
    const int64_t each = (int64_t)elements_of(p, axis, v->info->rank);
    for (hsize_t i = 0; i < p->count[axis] && v->steps < MOST_STEPS; i++) {
        const hsize_t first = p->start[axis] + i * p->stride[axis];
        v->steps++;
        for (hsize_t f = first; f < first + p->block[axis] && f < (hsize_t)v->frames;
             f++, v->steps++)
            v->elements[f] += each;
        if (first >= (hsize_t)v->frames)
            break;
    }
}

/* ---- sources ---- */

/* A stored name with its block number; false where it is none, or too long. */
static bool expand(const char *stored, int64_t block, char *name, size_t bytes)
{
    size_t at = 0;
    for (const char *c = stored; *c != '\0' && at + 24 < bytes; c++) {
        if (*c != '%')
            name[at++] = *c;
        else if (*++c == '%')
            name[at++] = '%';
        else if (*c == 'b')
            at += (size_t)snprintf(name + at, bytes - at, "%lld", (long long)block);
        else
            return false;
    }
    name[at] = '\0';
    return at + 24 < bytes;
}

static bool has_blocks(const char *stored)
{
    for (const char *c = strchr(stored, '%'); c; c = strchr(c + 2, '%'))
        if (c[1] != '%')
            return c[1] == 'b';
        else if (c[2] == '\0')
            break;
    return false;
}

static bool problem(virtual_map *v, const char *format, const char *name, const char *path)
{
    if (v->gaps->problem[0] == '\0')
        snprintf(v->gaps->problem, sizeof v->gaps->problem, format, name, path);
    return false;
}

/* Does the source reach as far as the selection of it? A file does not store the extents that
** belong to the selection of all; then the source must have as many elements as the part takes. */
static bool reaches(hid_t selection, const mb_h5_info *info, const part *p, int rank)
{
    hsize_t first[MB_H5_MAX_RANK] = {0}, last[MB_H5_MAX_RANK] = {0};
    if (H5Sget_select_type(selection) == H5S_SEL_ALL)
        return mb_h5_product(info->dims, info->rank) >= elements_of(p, -1, rank);
    const int known = H5Sget_simple_extent_ndims(selection);
    if (known > 0 && known != info->rank)
        return false;
    if (H5Sget_select_bounds(selection, first, last) < 0)
        return true; /* without an end: what there is of the source is what there is of the part */
    for (int axis = 0; axis < info->rank; axis++)
        if (last[axis] != H5S_UNLIMITED && (int64_t)last[axis] >= info->dims[axis])
            return false;
    return true;
}

static mb_status find_gaps(mb_h5 *file, hid_t id, const char *name, const mb_h5_info *info,
                           h5_gaps *gaps, int depth);

/* Adds a file that a part of the virtual dataset comes from. */
static mb_status add_source(virtual_map *v, const char *path, const part *p)
{
    const int axis = v->gaps->axis;
    const int64_t first = (int64_t)p->start[axis];
    const hsize_t length =
        p->count[axis] > 0 ? (p->count[axis] - 1) * p->stride[axis] + p->block[axis] : 0;
    return mb_h5_add_source(v->gaps, path, first, first + (int64_t)length - 1);
}

/* Is the dataset `path`, open as `id`, of the source file `name`, one that can be read? */
static mb_status check_dataset(virtual_map *v, hid_t id, const char *name, const char *path,
                               const mapping *m, bool *good)
{
    mb_h5_info info;
    h5_gaps gaps = {0};
    char why[H5_PROBLEM_BYTES];
    mb_status status = mb_h5_describe_dataset(v->file, id, path, &info);
    H5_OWNED hid_t properties = H5Dget_create_plist(id), type = H5Dget_type(id);
    *good = false;
    if (status != MB_STATUS_OK) {
        problem(v, "the dataset '%.200s' of its source '%.200s' is damaged", path, name);
        return MB_STATUS_OK;
    }
    if (!info.numeric)
        problem(v, "the dataset '%.200s' of its source '%.200s' holds no numbers", path, name);
    else if (!reaches(m->selection, &info, &m->to, v->info->rank))
        problem(v, "the dataset '%.200s' of its source '%.200s' is too small", path, name);
    else if (!mb_h5_filters_there(properties, why, sizeof why))
        problem(v, "its source '%.200s' %.400s", name, why);
    else
        status = find_gaps(v->file, id, name, &info, &gaps, v->depth + 1);
    const bool nested =
        strstr(gaps.problem, "source") != NULL || strstr(gaps.problem, "circle") != NULL;
    if (status == MB_STATUS_OK && info.numeric && gaps.problem[0] != '\0')
        problem(v, nested ? "%.0s%.600s" : "its source '%.150s' is incomplete: %.400s", name,
                gaps.problem);
    v->gaps->forbidden = v->gaps->forbidden || gaps.forbidden;
    const h5_expected chunk = mb_h5_expected_of(properties, H5Tget_size(type));
    mb_h5_join_expected(&v->gaps->chunk, info.is_virtual ? &gaps.chunk : &chunk);
    *good = status == MB_STATUS_OK && v->gaps->problem[0] == '\0';
    for (int64_t i = 0; i < gaps.source_count && *good && status == MB_STATUS_OK; i++)
        status = add_source(v, gaps.sources[i].path, &m->to);
    mb_h5_clear_gaps(&gaps);
    return status;
}

/* The source file, open, or -1 with the problem told. */
static hid_t open_source(virtual_map *v, const char *name, char *found)
{
    if (strcmp(name, ".") == 0) {
        snprintf(found, PATH_MAX, "%s", v->name);
        H5Iinc_ref(v->owner);
        return v->owner;
    }
    char why[H5_PROBLEM_BYTES] = "";
    const h5_verdict verdict = mb_h5_resolve(v->file, v->name, name, "HDF5_VDS_PREFIX", found, why);
    if (verdict != H5_FOUND) {
        v->gaps->forbidden = v->gaps->forbidden || verdict == H5_REFUSED;
        problem(v, "%s%s", why, "");
        return -1;
    }
    char said[200];
    const hid_t id = mb_h5_open_source(found, said, sizeof said);
    if (id < 0)
        problem(v, "its source '%.200s' cannot be opened: HDF5 says \"%.200s\"", found, said);
    return id;
}

/* One source of a mapping. */
static mb_status check_source(virtual_map *v, const char *name, const char *path, const mapping *m,
                              bool *good)
{
    char found[PATH_MAX];
    mb_status status = MB_STATUS_OK;
    char earlier[H5_PROBLEM_BYTES];
    memcpy(earlier, v->gaps->problem, sizeof earlier); /* the first problem is told */
    v->gaps->problem[0] = '\0';
    *good = false;
    H5_OWNED hid_t file = open_source(v, name, found);
    H5_OWNED hid_t access = mb_h5_link_access(v->file, H5P_DATASET_ACCESS);
    H5_OWNED hid_t id = file >= 0 ? H5Dopen2(file, path, access) : -1;
    if (id >= 0)
        status = check_dataset(v, id, found, path, m, good);
    else if (file >= 0)
        problem(v, "its source '%.200s' has no dataset '%.200s' that can be opened", found, path);
    if (status == MB_STATUS_OK && *good && strcmp(name, ".") != 0)
        status = add_source(v, found, &m->to);
    if (earlier[0] != '\0')
        memcpy(v->gaps->problem, earlier, sizeof earlier);
    return status;
}

/* A mapping whose names hold the number of a block: each is a source of its own. */
static mb_status check_blocks(virtual_map *v, const char *name, const char *path, const mapping *m)
{
    const part *all = &m->to;
    char file[2048], dataset[2048];
    const int axis = all->endless;
    for (hsize_t b = 0; axis >= 0 && b < all->count[axis] && v->sources < MOST_SOURCES; b++) {
        bool good = false;
        mapping one = *m;
        one.to.start[axis] += b * all->stride[axis];
        one.to.count[axis] = 1;
        v->sources++;
        if (!expand(name, (int64_t)b, file, sizeof file) ||
            !expand(path, (int64_t)b, dataset, sizeof dataset)) {
            problem(v, "its source '%.200s:%.200s' has no valid name", name, path);
            return MB_STATUS_OK;
        }
        MB_TRY(mb_cancel_check());
        MB_TRY(check_source(v, file, dataset, &one, &good));
        if (good)
            cover(v, &one.to);
        else if (b > 100 && v->file->allow_missing == false)
            return MB_STATUS_OK; /* one is enough to refuse */
    }
    return MB_STATUS_OK;
}

static mb_status check_mapping(virtual_map *v, hid_t properties, size_t index)
{
    char name[2048] = "", path[2048] = "", file[2048], dataset[2048];
    H5_OWNED hid_t selection = H5Pget_virtual_srcspace(properties, index);
    H5_OWNED hid_t space = H5Pget_virtual_vspace(properties, index);
    mapping m = {.selection = selection};
    bool good = false;
    if (space < 0 || m.selection < 0 || !take_part(space, v->info, &m.to) ||
        H5Pget_virtual_filename(properties, index, name, sizeof name) < 0 ||
        H5Pget_virtual_dsetname(properties, index, path, sizeof path) < 0)
        return MB_STATUS_OK; /* gives nothing */
    if (m.to.endless >= 0 && (has_blocks(name) || has_blocks(path)))
        return check_blocks(v, name, path, &m);
    if (!expand(name, 0, file, sizeof file) || !expand(path, 0, dataset, sizeof dataset)) {
        problem(v, "its source '%.200s:%.200s' has no valid name", name, path);
        return MB_STATUS_OK;
    }
    const mb_status status = check_source(v, file, dataset, &m, &good);
    if (good)
        cover(v, &m.to);
    return status;
}

/* ---- all of them ---- */

/* Turns what each frame gets into gaps. With allow_missing, frames that get something count as
** there: detectors of several modules have places in between that nothing belongs to. */
static mb_status collect_gaps(virtual_map *v)
{
    const int64_t whole = (int64_t)mb_h5_product(v->info->dims, v->info->rank) / v->frames;
    const int64_t least = v->file->allow_missing ? 1 : whole;
    for (int64_t f = 0; f < v->frames; f++)
        if (v->elements[f] < least)
            MB_TRY(mb_h5_add_gap(v->gaps, f, f));
    if (v->gaps->count == 0 && !v->gaps->forbidden)
        v->gaps->problem[0] = '\0';
    else if (v->gaps->problem[0] == '\0')
        snprintf(v->gaps->problem, sizeof v->gaps->problem,
                 "it is a virtual dataset, and its sources do not give all of those frames");
    return MB_STATUS_OK;
}

static mb_status find_virtual_gaps(mb_h5 *file, hid_t id, const char *name, const mb_h5_info *info,
                                   h5_gaps *gaps, int depth)
{
    virtual_map v = {.file = file, .name = name, .info = info, .gaps = gaps, .depth = depth};
    mb_status status = MB_STATUS_OK;
    size_t count = 0;
    if (info->rank < 1)
        return MB_STATUS_OK;
    v.frames = info->dims[gaps->axis];
    if (depth > MOST_DEPTH || v.frames > MOST_FRAMES) {
        snprintf(gaps->problem, sizeof gaps->problem,
                 depth > MOST_DEPTH ? "more than %lld virtual datasets refer to each other: they "
                                      "probably form a circle"
                                    : "it is virtual, and has more than %lld frames",
                 (long long)(depth > MOST_DEPTH ? MOST_DEPTH : MOST_FRAMES));
        return mb_h5_add_gap(gaps, 0, v.frames - 1);
    }
    v.elements = calloc((size_t)v.frames + 1, sizeof *v.elements);
    if (!v.elements)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to look at '%s'", name);
    H5_OWNED hid_t properties = H5Dget_create_plist(id), owner = H5Iget_file_id(id);
    v.owner = owner;
    if (H5Pget_virtual_count(properties, &count) < 0)
        count = 0;
    for (size_t i = 0; i < count && status == MB_STATUS_OK; i++)
        status = check_mapping(&v, properties, i);
    if (status == MB_STATUS_OK)
        status = collect_gaps(&v);
    free(v.elements);
    return status;
}

/* Virtual datasets may refer to virtual datasets: it calls itself by check_dataset. */
static mb_status find_gaps(mb_h5 *file, hid_t id, const char *name, const mb_h5_info *info,
                           h5_gaps *gaps, int depth)
{
    if (info->empty || mb_h5_product(info->dims, info->rank) == 0)
        return MB_STATUS_OK;
    return info->is_virtual ? find_virtual_gaps(file, id, name, info, gaps, depth)
                            : mb_h5_find_stored_gaps(file, id, info, gaps);
}

mb_status mb_h5_find_gaps(mb_h5 *file, hid_t id, const char *name, const mb_h5_info *info,
                          h5_gaps *gaps)
{
    return find_gaps(file, id, name, info, gaps, 0);
}

mb_status mb_h5_check_sources(mb_h5 *file, hid_t id, const char *name, const char *path)
{
    mb_h5_info info;
    h5_gaps gaps = {0};
    mb_status status = MB_STATUS_OK;
    MB_TRY(mb_h5_describe_dataset(file, id, path, &info));
    if (info.is_virtual && !file->folder)
        MB_TRY(mb_h5_set_folder(file, name));
    if (info.is_virtual)
        status = find_virtual_gaps(file, id, name, &info, &gaps, 0);
    if (info.is_virtual)
        mb_h5_expect(&gaps.chunk);
    if (status == MB_STATUS_OK && gaps.problem[0] != '\0')
        status = mb_fail(MB_STATUS_IO, NULL, "'%s' in '%s' cannot be read completely: %s", path,
                         name, gaps.problem);
    mb_h5_clear_gaps(&gaps);
    H5Eclear2(H5E_DEFAULT);
    return status;
}
