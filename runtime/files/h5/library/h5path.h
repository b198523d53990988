/*
** Paths in HDF5 files: what they lead to, and making groups and links.
*/
#ifndef MB_FILES_H5PATH_H
#define MB_FILES_H5PATH_H

#include "files/h5/library/h5types.h"

/* Does `path` lead to an object? It does not where a name is missing, or a soft link leads
** nowhere. A damaged group, a link that is refused, and one into a file that is missing are
** failures: what they hide is not absent. */
mb_status mb_h5_find(mb_h5 *file, const char *path, bool *found);
/* Fails unless there is an object at `path`. */
mb_status mb_h5_need(mb_h5 *file, const char *path);
/* Fails unless there is none, and the path can be used. */
mb_status mb_h5_need_new(mb_h5 *file, const char *path);
mb_status mb_h5_describe(mb_h5 *file, const char *path, mb_h5_info *info);
/* Creates a group with all its parents; an existing one is fine. */
mb_status mb_h5_group(mb_h5 *file, const char *path);
/* A hard link to `target`, or a soft one, at `path`. */
mb_status mb_h5_link(mb_h5 *file, const char *target, const char *path, bool soft);

#endif
