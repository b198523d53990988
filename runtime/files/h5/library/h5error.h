/*
** Failures of libhdf5 as one helpful line, and failures that are latched.
*/
#ifndef MB_FILES_H5ERROR_H
#define MB_FILES_H5ERROR_H

#include "files/h5/library/h5structs.h"

/* Start of every entry point: the thread's HDF5 error stack neither prints nor holds old errors. */
void mb_h5_quiet(void);
/* What HDF5 said (innermost record), or "". */
char *mb_h5_said(char *buffer, size_t bytes);
/* Records "cannot <doing> '<path>' of '<file>': HDF5 says <its words>; <remedy>". */
mb_status mb_h5_failure(mb_h5 *file, const char *path, const char *doing);
/* Records that the disk has refused a write of the file (file->disk.error), as mb_h5_failure
** does. */
mb_status mb_h5_refused(mb_h5 *file, const char *path, const char *doing);
/* Latches the recorded failure of a created file; returns `status`. */
mb_status mb_h5_latch(mb_h5 *file, mb_status status);
/* A copy of the text, or NULL without memory, with the failure recorded. */
char *mb_h5_copy_text(const char *text);
const char *mb_h5_version(void); /* of libhdf5 */

#endif
