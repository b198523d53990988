/*
** Whole files, for files/h5 alone.
*/
#ifndef MB_FILES_H5WHOLE_H
#define MB_FILES_H5WHOLE_H

#include "files/h5/data/h5data.h"

/* ---- h5walk.c ---- */

void mb_h5_free_entries(mb_h5 *file);

/* ---- h5verify.c ---- */

/* Fails unless the file, opened again as `reopened`, has what was written to it (h5made.c). */
mb_status mb_h5_verify(mb_h5 *file, hid_t reopened);

/* ---- h5probe.c ---- */

/* Memory of the other process beyond what the program takes anyway. */
#define MB_H5_PROBE_BYTES (160 << 20)

/* How the other process ends. */
enum { MB_H5_PROBE_GOOD = 0, MB_H5_PROBE_MEMORY = 3 };

/* Fails where the process that looks at the file crashes, takes too much memory, or does not end;
** waits for it, and polls the cancel flag. A file that was found good is not probed again, unless
** it changes. */
mb_status mb_h5_probe(const char *path, const mb_h5_access *how);
/* This file needs no probe as it is now: it was written here. */
void mb_h5_probe_trust(const char *path);

/* ---- h5file.c ---- */

/* mb_h5_open without the probe. */
mb_status mb_h5_open_unprobed(const char *path, const mb_h5_access *how, mb_h5 **out);

#endif
