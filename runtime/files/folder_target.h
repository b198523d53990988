/*
** Folders as results (OME-Zarr): by which they get their names. Such a folder is made in that of an
** unfinished run (files/unfinished.h), which also removes what it has replaced.
*/
#ifndef MB_FILES_FOLDER_TARGET_H
#define MB_FILES_FOLDER_TARGET_H

#include "core/status.h"

/* Is that the name of a folder, rather than of a file? One that ends in ".zarr". */
bool mb_folder_target_is(const char *path);
/* Fails unless a folder could get this name now. With `overwrite` it may be that of a Zarr group or
** array, but of nothing else. */
mb_status mb_folder_target_check(const char *path, bool overwrite);
/* Gives the complete folder `now` its name. What had the name is then called "<now>.swap". */
mb_status mb_folder_target_name(const char *now, const char *path, bool overwrite);

#endif
