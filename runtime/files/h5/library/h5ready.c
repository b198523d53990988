/*
** The state of a file.
**
** Invariant: a file at rest has no id, and its datasets have none; file->resting is set, and
** file->fd is open on it.
*/
#include "files/h5/library/h5library.h"

hid_t mb_h5_created_access(mb_h5 *file)
{
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    H5Pset_file_locking(access, false, true);
    H5Pset_alignment(access, 1 << 20, 4096);
    mb_h5_use_driver(access, &file->disk);
    return access;
}

mb_status mb_h5_begin_rest(mb_h5 *file)
{
    for (mb_h5_dataset *dataset = file->datasets; dataset; dataset = dataset->next) {
        if (dataset->id >= 0)
            H5Dclose(dataset->id);
        dataset->id = -1;
    }
    const bool closed = H5Fclose(file->id) >= 0;
    file->id = -1;
    file->resting = true;
    if (!closed)
        return mb_h5_latch(file, mb_h5_failure(file, NULL, "close the contents"));
    return file->disk.error != 0
               ? mb_h5_latch(file, mb_h5_refused(file, NULL, "close the contents"))
               : MB_STATUS_OK;
}

static mb_status end_rest(mb_h5 *file)
{
    H5_OWNED hid_t access = mb_h5_created_access(file);
    file->id = H5Fopen(file->target ? mb_target_now(file->target) : "/", H5F_ACC_RDWR, access);
    if (file->id < 0)
        return mb_h5_latch(file, mb_h5_failure(file, NULL, "open the contents again"));
    file->resting = false;
    for (mb_h5_dataset *dataset = file->datasets; dataset; dataset = dataset->next) {
        dataset->id = H5Dopen2(file->id, dataset->path, H5P_DEFAULT);
        if (dataset->id < 0)
            return mb_h5_latch(file, mb_h5_failure(file, dataset->path, "open again"));
    }
    return MB_STATUS_OK;
}

mb_status mb_h5_usable(mb_h5 *file, bool writing)
{
    mb_h5_quiet();
    if (!file)
        return mb_fail(MB_STATUS_ARGUMENT, NULL,
                       "the HDF5 file of this dataset has been closed; open it again");
    mb_h5_now_at(file->path);
    file->refused[0] = '\0';
    file->link_depth = 0;
    if (file->latched.code != MB_STATUS_OK) {
        mb_error_put(&file->latched);
        return file->latched.code;
    }
    if (file->id < 0 && !file->resting)
        return mb_fail(MB_STATUS_ARGUMENT, NULL, "'%s' has been closed; open it again", file->path);
    if (writing && !file->writable)
        return mb_fail(MB_STATUS_ARGUMENT, "mode",
                       "'%s' is open for reading only: open it with mode = \"r+\"", file->path);
    if (file->disk.error != 0)
        return mb_h5_latch(file, mb_h5_refused(file, NULL, "write the contents"));
    return MB_STATUS_OK;
}

mb_status mb_h5_ready(mb_h5 *file, bool writing)
{
    MB_TRY(mb_h5_usable(file, writing));
    return file->resting ? end_rest(file) : MB_STATUS_OK;
}
