/*
** What a dataset does not get: the sources of virtual datasets, and what was never written.
*/
#ifndef MB_FILES_H5SOURCES_H
#define MB_FILES_H5SOURCES_H

#include "files/h5/library/h5structs.h"

/* Adds what dataset `id`, in a file that is called `name`, lacks to the list. */
mb_status mb_h5_find_gaps(mb_h5 *file, hid_t id, const char *name, const mb_h5_info *info,
                          h5_gaps *gaps);
/* Fails where something of a virtual dataset is missing; it is open as `id` in a file that is
** called `name`, and has the path `path`. */
mb_status mb_h5_check_sources(mb_h5 *file, hid_t id, const char *name, const char *path);

#endif
