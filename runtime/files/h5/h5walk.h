/*
** The structure of an HDF5 file as a list.
*/
#ifndef MB_FILES_H5WALK_H
#define MB_FILES_H5WALK_H

#include "files/h5/library/h5types.h"

/* All objects below `path` in name order, parents first. A group that is reached twice is listed
** twice but entered once; groups behind external links are not entered. The list belongs to the
** file, until its next walk or its end. */
mb_status mb_h5_walk(mb_h5 *file, const char *path, const mb_h5_entry **list, int64_t *count);
void mb_h5_free_entries(mb_h5 *file);

#endif
