/*
** The HDF5 file driver by which files are written.
*/
#ifndef MB_FILES_H5DRIVER_H
#define MB_FILES_H5DRIVER_H

#include "files/h5/library/h5structs.h"

/* Has files that are opened by `access` written by our driver, which refers to `disk`. */
void mb_h5_use_driver(hid_t access, h5_disk *disk);
/* The descriptor of an open file, or -1. */
int mb_h5_descriptor(hid_t file);

#endif
