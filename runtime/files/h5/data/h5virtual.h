/*
** New virtual datasets.
*/
#ifndef MB_FILES_H5VIRTUAL_H
#define MB_FILES_H5VIRTUAL_H

#include "files/h5/library/h5types.h"

/* A new dataset that shows others as one; they may come into being later, but must be there when
** the file is finished. Fails where the disk has no room for their data. */
mb_status mb_h5_virtual_create(mb_h5 *file, const char *path, mb_dtype dtype, int rank,
                               const int64_t *dims, const mb_h5_source *sources, int64_t count,
                               mb_h5_dataset **out);

#endif
