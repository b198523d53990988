/*
** Opening and closing HDF5 files.
*/
#ifndef MB_FILES_H5FILE_H
#define MB_FILES_H5FILE_H

#include "files/h5/library/h5types.h"

/* Opens an ordinary file. One that is not known yet is probed before (h5probe.h). `how` may be
** NULL: for reading. */
mb_status mb_h5_open(const char *path, const mb_h5_access *how, mb_h5 **out);
/* The same without the probe. */
mb_status mb_h5_open_unprobed(const char *path, const mb_h5_access *how, mb_h5 **out);
/* Closes; a created and unfinished file is abandoned. Idempotent. */
mb_status mb_h5_close(mb_h5 *file);
/* Closes if need be, and frees. NULL is fine. Leaves the error record alone. */
void mb_h5_destroy(mb_h5 *file);

bool mb_h5_is_open(const mb_h5 *file);
bool mb_h5_is_writable(const mb_h5 *file);
const char *mb_h5_path(const mb_h5 *file);      /* the final name */
const char *mb_h5_part_path(const mb_h5 *file); /* a created file's name now, or NULL */

#endif
