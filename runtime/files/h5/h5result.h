/*
** Created HDF5 files.
*/
#ifndef MB_FILES_H5RESULT_H
#define MB_FILES_H5RESULT_H

#include "files/h5/library/h5types.h"

/* Fails at once where the folder cannot be written, and where `path` exists unless `overwrite`. */
mb_status mb_h5_create(const char *path, bool overwrite, mb_h5 **out);
/* A file without a name in `folder`; it is gone when it is closed, or with the process. */
mb_status mb_h5_scratch(const char *folder, mb_h5 **out);
/* Makes the folder of slices beside a created file (files/target.h); *out is its path. */
mb_status mb_h5_make_folder(mb_h5 *file, const char **out);
/* Has libhdf5 write and close the file for now, so that what it has made is on record, and all that
** is still to come are bytes of datasets at known places. *rests: false where the place of an open
** dataset is not known (it is compressed); the file is then as it was. Raw writes go on while the
** file is at rest; whatever else is done with it opens it again. */
mb_status mb_h5_rest(mb_h5 *file, bool *rests);
/* Completes a created file: writes the completion marker (an ISO time) as a dataset at `marker`, or
** as attribute "end_time" of the root when it is NULL; flush, close, sync, reopen and verify,
** rename. Whatever fails, the temporary file is gone and nothing has the final name. Without `sync`
** the disk is not waited for: for a file among many, whose owner has the disk take them all before
** anything refers to them. `held` (may be NULL): the file that this one replaces stays until
** mb_h5_close; *held is its name, or NULL. */
mb_status mb_h5_finish(mb_h5 *file, const char *marker, bool sync, const char **held);

#endif
