/*
** Which bytes of its file each contiguous dataset has that was opened for reading. libhdf5 gives no
** byte to two of them, but does not look: where an address is damaged, a dataset has the values of
** another one.
*/
#include "core/grow.h"
#include "files/h5/library/h5library.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_PLACES 4096 /* each is compared with all before it */

/* A dataset that has bytes of this one, or NULL. */
static const h5_extent *shared_with(const mb_h5 *file, const h5_extent *own)
{
    for (int64_t i = 0; i < file->extent_count; i++) {
        const h5_extent *other = &file->extents[i];
        if (other->file == own->file && other->object != own->object &&
            other->first < own->first + own->bytes && own->first < other->first + other->bytes)
            return other;
    }
    return NULL;
}

static bool is_known(const mb_h5 *file, const h5_extent *own)
{
    for (int64_t i = 0; i < file->extent_count; i++)
        if (file->extents[i].file == own->file && file->extents[i].object == own->object)
            return true;
    return false;
}

mb_status mb_h5_check_place(mb_h5 *file, hid_t dataset, const char *path)
{
    H5O_info_t about;
    const haddr_t first = H5Dget_offset(dataset);
    const hsize_t bytes = H5Dget_storage_size(dataset);
    if (first == HADDR_UNDEF || bytes == 0 || first > HADDR_MAX - bytes ||
        H5Oget_info2(dataset, &about, H5O_INFO_BASIC) < 0 || file->extent_count == MOST_PLACES)
        return MB_STATUS_OK;
    const h5_extent own = {about.fileno, about.addr, first, bytes};
    if (is_known(file, &own))
        return MB_STATUS_OK;
    if (shared_with(file, &own))
        return mb_fail(MB_STATUS_IO, NULL,
                       "'%s' in '%s' has bytes of the file that another dataset has, too: the file "
                       "is damaged: copy it again, or use another copy",
                       path, file->path);
    h5_extent *extents =
        mb_grow(file->extents, file->extent_count, &file->extent_room, sizeof *extents);
    if (!extents)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for a dataset handle");
    file->extents = extents;
    extents[file->extent_count++] = own;
    return MB_STATUS_OK;
}

void mb_h5_forget_places(mb_h5 *file)
{
    free(file->extents);
    file->extents = NULL;
    file->extent_count = file->extent_room = 0;
}
