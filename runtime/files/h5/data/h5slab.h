/*
** Hyperslabs of HDF5 datasets, to and from host memory and arrays.
*/
#ifndef MB_FILES_H5SLAB_H
#define MB_FILES_H5SLAB_H

#include "files/h5/library/h5types.h"

/* Reads a hyperslab (one range per axis, steps >= 1) into `array`, whose elements in row-major
** order are those of the slab; HDF5 converts the elements. Integers that do not fit are clamped;
** floating point does not become integer. The array must be contiguous. On a device other than the
** host the data go through a buffer of 32 MiB. Polls the cancel flag. In a dry run nothing is
** read. */
mb_status mb_h5_dataset_read(mb_h5_dataset *dataset, const mb_range *ranges, mb_array *array);
/* The same into host memory. */
mb_status mb_h5_dataset_read_host(mb_h5_dataset *dataset, const mb_range *ranges, mb_dtype dtype,
                                  void *host);
/* Writes `array` into a hyperslab; any strides on the host, contiguous elsewhere. */
mb_status mb_h5_dataset_write(mb_h5_dataset *dataset, const mb_range *ranges,
                              const mb_array *array);
mb_status mb_h5_dataset_write_host(mb_h5_dataset *dataset, const mb_range *ranges, mb_dtype dtype,
                                   const void *host);
/* The checks of read and write, without moving anything. */
mb_status mb_h5_dataset_check(mb_h5_dataset *dataset, const mb_range *ranges, const mb_array *array,
                              bool reading);

#endif
