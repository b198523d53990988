/*
** The process that looks at an HDF5 file (h5probe.h).
*/
#ifndef MB_FILES_H5PROBE_CHILD_H
#define MB_FILES_H5PROBE_CHILD_H

/* Reads all the structure and the small values of the file, and returns the exit status. */
int mb_h5_probe_child(const char *path, const char *flags);

#endif
