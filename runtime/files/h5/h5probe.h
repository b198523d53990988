/*
** A look at an HDF5 file in a process of its own, before this one opens it: libhdf5 hangs on some
** damaged files, crashes on others, and takes gigabytes for more. The other process is the
** program itself, with limits of time and memory (h5probe_child.h).
*/
#ifndef MB_FILES_H5PROBE_H
#define MB_FILES_H5PROBE_H

#include "files/h5/library/h5types.h"

/* The option with which the program probes: PROGRAM --probe-hdf5 FILE [FLAGS]. */
#define MB_H5_PROBE_OPTION "--probe-hdf5"
/* Memory of the other process beyond what the program takes anyway. */
#define MB_H5_PROBE_BYTES (160 << 20)

/* How the other process ends. */
enum { MB_H5_PROBE_GOOD = 0, MB_H5_PROBE_MEMORY = 3 };

/* Says that the program that runs knows MB_H5_PROBE_OPTION. Without this call (the module in
** another program), a moonbeam beside the module is used; where there is none, files are not
** probed. */
void mb_h5_probe_by_self(void);
/* Fails where the process that looks at the file crashes, takes too much memory, or does not end;
** waits for it, and polls the cancel flag. A file that was found good is not probed again, unless
** it changes. */
mb_status mb_h5_probe(const char *path, const mb_h5_access *how);
/* This file needs no probe as it is now: it was written here. */
void mb_h5_probe_trust(const char *path);

#endif
