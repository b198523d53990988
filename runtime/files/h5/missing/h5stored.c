/*
** What was never written of a dataset that has its data by itself: contiguous, in chunks, or in
** files of external storage.
**
** External storage takes any file for raw bytes. It is read only if the reader allows it.
*/
#include "files/h5/missing/h5missing.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#define MOST_CHUNKS ((uint64_t)1 << 20) /* to be looked up one by one */
#define MOST_STORAGE_FILES 100000

/* ---- in the file ---- */

/* The size of the file that a dataset is in, or INT64_MAX where it has none. */
static uint64_t size_of_owner(hid_t id)
{
    struct stat status;
    H5_OWNED hid_t file = H5Iget_file_id(id);
    return fstat(mb_h5_descriptor(file), &status) == 0 ? (uint64_t)status.st_size : INT64_MAX;
}

/* Contiguous data have one place, or none. */
static mb_status find_contiguous(hid_t id, const mb_h5_info *info, h5_gaps *gaps)
{
    const haddr_t place = H5Dget_offset(id);
    H5_OWNED hid_t type = H5Dget_type(id);
    const uint64_t size = size_of_owner(id);
    const uint64_t bytes = mb_bytes_mul(H5Tget_size(type), mb_h5_product(info->dims, info->rank));
    if (place == HADDR_UNDEF) {
        snprintf(gaps->problem, sizeof gaps->problem, "it was never written");
        return mb_h5_add_whole_gap(gaps, info);
    }
    if (bytes <= size && place <= size - bytes)
        return MB_STATUS_OK;
    snprintf(
        gaps->problem, sizeof gaps->problem,
        "its %llu bytes do not fit into its file of %llu bytes: the file is truncated or damaged",
        (unsigned long long)bytes, (unsigned long long)size);
    return mb_h5_add_whole_gap(gaps, info);
}

/* Is one of the chunks of a row of the grid missing, which begins at this index of `frames`? */
static bool lacks_chunk(hid_t id, const mb_h5_info *info, int frames, int64_t frame)
{
    hsize_t at[MB_H5_MAX_RANK] = {0}, bytes;
    at[frames] = (hsize_t)frame;
    for (;;) {
        bytes = 0;
        if (H5Dget_chunk_storage_size(id, at, &bytes) < 0 || bytes == 0)
            return true;
        int axis = info->rank - 1;
        for (; axis >= 0; axis--) {
            if (axis == frames)
                continue;
            at[axis] += (hsize_t)info->chunks[axis];
            if (at[axis] < (hsize_t)info->dims[axis])
                break;
            at[axis] = 0;
        }
        if (axis < 0)
            return false;
    }
}

/* Chunks are counted first; only where some are missing they are looked up. */
static mb_status find_chunked(mb_h5 *file, hid_t id, const mb_h5_info *info, h5_gaps *gaps)
{
    uint64_t expected = 1;
    hsize_t there = 0;
    for (int axis = 0; axis < info->rank; axis++)
        expected =
            mb_bytes_mul(expected, (uint64_t)((info->dims[axis] - 1) / info->chunks[axis]) + 1);
    H5_OWNED hid_t space = H5Dget_space(id);
    if (H5Dget_num_chunks(id, space, &there) < 0)
        return mb_h5_failure(file, NULL, "count the chunks");
    if (there >= expected)
        return MB_STATUS_OK;
    snprintf(gaps->problem, sizeof gaps->problem, "only %llu of its %llu chunks were written",
             (unsigned long long)there, (unsigned long long)expected);
    if (there == 0 || expected > MOST_CHUNKS)
        return mb_h5_add_whole_gap(gaps, info);
    const int64_t frames = info->dims[gaps->axis], depth = info->chunks[gaps->axis];
    for (int64_t frame = 0; frame < frames; frame += depth) {
        const int64_t next = frame + depth;
        MB_TRY(mb_cancel_check());
        if (lacks_chunk(id, info, gaps->axis, frame))
            MB_TRY(mb_h5_add_gap(gaps, frame, (next < frames ? next : frames) - 1));
    }
    H5Eclear2(H5E_DEFAULT);
    return MB_STATUS_OK;
}

/* ---- external storage ---- */

/* One file of it: there, allowed, and long enough. */
static bool check_storage_file(mb_h5 *file, hid_t properties, unsigned index,
                               const mb_h5_info *info, h5_gaps *gaps)
{
    char name[PATH_MAX] = "", found[PATH_MAX];
    off_t offset = 0;
    hsize_t bytes = 0;
    struct stat status;
    if (H5Pget_external(properties, index, sizeof name - 1, name, &offset, &bytes) < 0) {
        snprintf(gaps->problem, sizeof gaps->problem, "the files with its bytes cannot be listed");
        return false;
    }
    /* Any file can be taken for raw bytes, so being in the folder, which may be the reader's
    ** home, is no excuse. */
    if (!file->allow_external) {
        snprintf(
            gaps->problem, H5_PROBLEM_BYTES,
            "its bytes are in another file, '%.300s' (external storage): if you trust the file, "
            "give the option allow_external",
            name);
        gaps->forbidden = true;
        return false;
    }
    const h5_verdict result = mb_h5_resolve_storage(file, name, found, gaps->problem);
    gaps->forbidden = gaps->forbidden || result == H5_REFUSED;
    if (result != H5_FOUND)
        return false;
    if (bytes != H5F_UNLIMITED && stat(found, &status) == 0 &&
        (offset < 0 || bytes > INT64_MAX || (int64_t)bytes > status.st_size - offset)) {
        snprintf(gaps->problem, sizeof gaps->problem,
                 "it refers to '%.300s', which is shorter than it should be", name);
        return false;
    }
    return mb_h5_add_source(gaps, found, 0, info->rank > 0 ? info->dims[gaps->axis] - 1 : 0) ==
           MB_STATUS_OK;
}

static bool check_storage(mb_h5 *file, hid_t id, const mb_h5_info *info, h5_gaps *gaps)
{
    H5_OWNED hid_t properties = H5Dget_create_plist(id);
    const int count = H5Pget_external_count(properties);
    bool good = count <= MOST_STORAGE_FILES;
    if (!good)
        snprintf(gaps->problem, sizeof gaps->problem, "its bytes are in %d other files", count);
    for (int i = 0; i < count && good; i++)
        good = check_storage_file(file, properties, (unsigned)i, info, gaps);
    return good;
}

mb_status mb_h5_find_stored_gaps(mb_h5 *file, hid_t id, const mb_h5_info *info, h5_gaps *gaps)
{
    if (info->chunked)
        return find_chunked(file, id, info, gaps);
    H5_OWNED hid_t properties = H5Dget_create_plist(id);
    if (H5Pget_layout(properties) != H5D_CONTIGUOUS)
        return MB_STATUS_OK;
    if (H5Pget_external_count(properties) == 0)
        return find_contiguous(id, info, gaps);
    return check_storage(file, id, info, gaps) ? MB_STATUS_OK : mb_h5_add_whole_gap(gaps, info);
}
