/*
** New datasets with their disk space.
*/
#ifndef MB_FILES_H5CREATE_H
#define MB_FILES_H5CREATE_H

#include "files/h5/library/h5types.h"

/* A new dataset, with all its parent groups. A large one takes its disk space now: a full disk is
** an error here. */
mb_status mb_h5_dataset_create(mb_h5 *file, const char *path, mb_dtype dtype, int rank,
                               const int64_t *dims, const mb_h5_layout *layout,
                               mb_h5_dataset **out);
/* Fails where the disk has no room for `bytes` more. */
mb_status mb_h5_check_space(mb_h5 *file, uint64_t bytes);
/* A handle for a dataset just created as `id` (libhdf5's hid_t), which the file will look for when
** it is verified. */
mb_status mb_h5_adopt_made(mb_h5 *file, int64_t id, const char *path, mb_h5_dataset **out);

#endif
