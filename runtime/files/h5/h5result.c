/*
** Created HDF5 files: the first failure latched, verification; then the target gives them their
** name (files/target.h).
**
** Why so careful: on a full disk H5Dwrite fails, but H5Fclose succeeds, and the file then opens and
** reads, with zeros where data should be. So nothing here trusts H5Fclose: what the disk refused is
** asked of the driver (h5driver.c), the file is opened again, compared with what was meant to be in
** it, synced through a descriptor of our own (which reports write-back errors), and only then gets
** its name.
**
** Invariant: while file->created and file->id >= 0, file->fd is open on the file: the target's, or
** the scratch file's own.
*/
#define _GNU_SOURCE
#include "files/h5/h5internal.h"
#include "files/h5/h5probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The HDF5 contents of a file that is open as `file->fd`. */
static mb_status create_contents(mb_h5 *file)
{
    mb_status status = MB_STATUS_OK;
    file->disk.created = true;
    file->disk.fd = file->fd;
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    H5Pset_file_locking(access, false, true);
    H5Pset_alignment(access, 1 << 20, 4096);
    mb_h5_use_driver(access, &file->disk);
    /* Our driver takes the descriptor; libhdf5 only wants to see that something has this name. */
    const char *name = file->target != NULL ? mb_target_now(file->target) : "/";
    file->id = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (file->id < 0) /* before the next call, which would clear what HDF5 says */
        status = mb_h5_failure(file, NULL, "create the file");
    H5Pclose(access);
    file->created = file->id >= 0;
    if (file->created && file->disk.error != 0)
        status = mb_h5_refused(file, NULL, "create the file");
    return status;
}

static mb_h5 *make(const char *path)
{
    mb_h5 *file = calloc(1, sizeof *file);
    if (file != NULL) {
        file->id = -1;
        file->fd = -1;
        file->writable = true;
        file->path = strdup(path);
    }
    if (file == NULL || file->path == NULL) {
        free(file);
        mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to create '%s'", path);
        return NULL;
    }
    return file;
}

mb_status mb_h5_create(const char *path, bool overwrite, mb_h5 **out)
{
    MB_H5_GUARD;
    *out = NULL;
    mb_h5_quiet();
    mb_h5 *file = make(path);
    if (file == NULL)
        return MB_STATUS_MEMORY;
    mb_status status = mb_target_create(path, overwrite, &file->target);
    if (status == MB_STATUS_OK) {
        file->fd = mb_target_fd(file->target);
        status = create_contents(file);
    }
    if (status != MB_STATUS_OK) {
        mb_h5_destroy(file);
        return status;
    }
    *out = file;
    return MB_STATUS_OK;
}

mb_status mb_h5_scratch(const char *folder, mb_h5 **out)
{
    MB_H5_GUARD;
    *out = NULL;
    mb_h5_quiet();
    mb_h5 *file = make(folder);
    if (file == NULL)
        return MB_STATUS_MEMORY;
    mb_status status = mb_target_scratch(folder, &file->fd);
    if (status == MB_STATUS_OK)
        status = create_contents(file);
    if (status != MB_STATUS_OK) {
        mb_h5_destroy(file);
        return status;
    }
    *out = file;
    return MB_STATUS_OK;
}

mb_status mb_h5_make_folder(mb_h5 *file, const char **out)
{
    MB_H5_GUARD;
    MB_TRY(mb_h5_ready(file, true));
    if (file->target == NULL)
        return mb_fail(MB_STATUS_ARGUMENT, NULL, "'%s' was not created here", file->path);
    return mb_target_make_folder(file->target, out);
}

void mb_h5_forget_made(mb_h5 *file)
{
    while (file->made != NULL) {
        h5_made *made = file->made;
        file->made = made->next;
        mb_h5_forget_sources(made);
        free(made->path);
        free(made);
    }
    file->made_count = 0;
    free(file->samples);
    file->samples = NULL;
    file->sample_count = 0;
}

/* FNV-1a over 8 bytes at a time, then the rest. */
uint64_t mb_h5_sum(const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    uint64_t sum = 14695981039346656037u;
    for (; count >= 8; count -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        sum = (sum ^ word) * 1099511628211u;
        sum ^= sum >> 29;
    }
    for (; count > 0; count--, at++)
        sum = (sum ^ *at) * 1099511628211u;
    return sum;
}

static mb_status verify_dataset(mb_h5 *file, const h5_made *made, hid_t id)
{
    mb_h5_info found;
    uint64_t expected = mb_dtype_bytes(made->info.dtype);
    MB_TRY(mb_h5_describe_dataset(file, id, made->path, &found));
    bool same = found.rank == made->info.rank && strcmp(found.stored, made->info.stored) == 0;
    for (int axis = 0; same && axis < found.rank; axis++) {
        same = found.dims[axis] == made->info.dims[axis];
        expected = mb_bytes_mul(expected, (uint64_t)found.dims[axis]);
    }
    if (!same)
        return mb_fail(
            MB_STATUS_IO, NULL,
            "verification of '%s': '%s' does not have the shape or type that was written",
            file->path, made->path);
    if (found.is_virtual) {
        MB_TRY(mb_h5_check_sources(file, id, mb_target_now(file->target), made->path));
        return mb_h5_verify_virtual(file, made, id);
    }
    if (!made->info.text && !made->info.filtered && found.stored_bytes < expected)
        return mb_fail_bytes(
            MB_STATUS_IO, expected, found.stored_bytes,
            "verification of '%s': only %llu of %llu bytes of '%s' are in the file", file->path,
            (unsigned long long)found.stored_bytes, (unsigned long long)expected, made->path);
    return MB_STATUS_OK;
}

static mb_status verify_sample(mb_h5 *file, const h5_made *made, const h5_sample *sample, hid_t id)
{
    mb_status status = MB_STATUS_OK;
    const size_t bytes = mb_bytes_mul((uint64_t)sample->count, mb_dtype_bytes(sample->dtype));
    const int rank = made->info.rank;
    hsize_t start[MB_H5_MAX_RANK], count[MB_H5_MAX_RANK];
    hid_t type = -1, from = -1, to = -1;
    void *row = malloc(bytes + 1);
    if (row == NULL)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to verify '%s'", file->path);
    for (int axis = 0; axis < rank; axis++) {
        start[axis] = (hsize_t)sample->first[axis];
        count[axis] = axis == rank - 1 ? (hsize_t)sample->count : 1;
    }
    type = mb_h5_type_of(sample->dtype);
    from = H5Dget_space(id);
    to = H5Screate_simple(rank, count, NULL);
    if (H5Sselect_hyperslab(from, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
        H5Dread(id, type, to, from, H5P_DEFAULT, row) < 0)
        status = mb_h5_failure(file, made->path, "read back");
    else if (mb_h5_sum(row, bytes) != sample->sum)
        status = mb_fail(MB_STATUS_IO, NULL,
                         "verification of '%s': data of '%s' are not what was written (disk full?)",
                         file->path, made->path);
    H5Sclose(to);
    H5Sclose(from);
    H5Tclose(type);
    free(row);
    return status;
}

mb_status mb_h5_verify(mb_h5 *file, hid_t reopened)
{
    for (const h5_made *made = file->made; made != NULL; made = made->next) {
        const hid_t id = H5Dopen2(reopened, made->path, H5P_DEFAULT);
        if (id < 0)
            return mb_h5_failure(file, made->path, "find again");
        mb_status status = verify_dataset(file, made, id);
        for (int i = 0; i < file->sample_count && status == MB_STATUS_OK; i++)
            if (file->samples[i].made == made->number)
                status = verify_sample(file, made, &file->samples[i], id);
        H5Dclose(id);
        MB_TRY(status);
    }
    return MB_STATUS_OK;
}

/* Opens the closed part file again and compares. */
static mb_status reopen_and_verify(mb_h5 *file, const char *marker)
{
    mb_status status;
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    H5Pset_file_locking(access, false, true);
    const hid_t id = H5Fopen(mb_target_now(file->target), H5F_ACC_RDONLY, access);
    H5Pclose(access);
    if (id < 0)
        return mb_h5_failure(file, NULL, "verify the contents");
    const htri_t marked =
        marker != NULL ? H5Lexists(id, marker, H5P_DEFAULT) : H5Aexists(id, "end_time");
    if (marked <= 0)
        status = mb_fail(MB_STATUS_IO, NULL,
                         "verification of '%s': the completion marker is missing", file->path);
    else
        status = mb_h5_verify(file, id);
    H5Fclose(id);
    return status;
}

static mb_status write_marker(mb_h5 *file, const char *marker)
{
    char now[40];
    char *text = mb_h5_now(now, sizeof now);
    mb_h5_value value = {.text = true, .rank = 0, .count = 1, .strings = &text};
    if (marker == NULL)
        return mb_h5_attribute_write(file, "/", "end_time", &value);
    return mb_h5_value_write(file, marker, &value);
}

static mb_status flush_all(mb_h5 *file)
{
    mb_h5_close_datasets(file);
    if (H5Fflush(file->id, H5F_SCOPE_GLOBAL) < 0)
        return mb_h5_failure(file, NULL, "flush the contents");
    return file->disk.error != 0 ? mb_h5_refused(file, NULL, "flush the contents") : MB_STATUS_OK;
}

mb_status mb_h5_finish(mb_h5 *file, const char *marker, bool sync, const char **held)
{
    MB_H5_GUARD;
    if (file->target == NULL)
        return mb_fail(MB_STATUS_ARGUMENT, NULL,
                       "'%s' was not created here: only a created file is finished", file->path);
    mb_status status = mb_h5_ready(file, true);
    if (status != MB_STATUS_OK && file->id < 0)
        return status;
    if (status == MB_STATUS_OK)
        status = write_marker(file, marker);
    if (status == MB_STATUS_OK)
        status = flush_all(file);
    if (status != MB_STATUS_OK) {
        mb_h5_latch(file, status);
        MB_KEEP_ERROR;
        (void)mb_h5_close(file); /* abandons */
        return status;
    }
    if (H5Fclose(file->id) < 0)
        status = mb_h5_failure(file, NULL, "close the file");
    else if (file->disk.error != 0)
        status = mb_h5_refused(file, NULL, "close the file");
    file->id = -1;
    if (status == MB_STATUS_OK)
        status = reopen_and_verify(file, marker);
    if (status == MB_STATUS_OK)
        status = mb_target_name(file->target, -1, sync, held);
    mb_h5_latch(file, status);
    if (status != MB_STATUS_OK || held == NULL)
        mb_h5_close(file); /* discards what has no name */
    file->fd = -1;
    mb_h5_forget_made(file);
    if (status == MB_STATUS_OK && held == NULL)
        mb_h5_probe_trust(file->path);
    return status;
}
