/*
** A look at an HDF5 file in a process of its own, before this one opens it: libhdf5 hangs on some
** damaged files, crashes on others, and takes gigabytes for more. The other process is the
** program itself, with limits of time and memory, which reads all the structure and the small
** values of the file.
*/
#ifndef MB_IO_H5PROBE_H
#define MB_IO_H5PROBE_H

#include "files/h5/h5file.h"

/* The option with which the program probes: PROGRAM --probe-hdf5 FILE [FLAGS]. */
#define MB_H5_PROBE_OPTION "--probe-hdf5"

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
/* The other process: looks, and returns its exit status. */
int mb_h5_probe_child(const char *path, const char *flags);

/* mb_h5_open without the probe. */
mb_status mb_h5_open_unprobed(const char *path, const mb_h5_access *how, mb_h5 **out);

#endif
