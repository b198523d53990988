/*
** Slices of half the size, from file to file: the levels of a pyramid.
*/
#ifndef MB_FILES_HALVE_H
#define MB_FILES_HALVE_H

#include "files/rawfile.h"

/* A dense slice in a file. */
typedef struct mb_file_slice {
    mb_rawfile *file;
    uint64_t offset;
} mb_file_slice;

/* Writes to `out` the mean of each 2 x 2 block of values of two slices of rows x columns. Odd
** extents are rounded up, with the last value repeated. Integers (u8, u16) are rounded to the
** nearest; f16 and f32 are summed in single precision. Takes a few hundred KiB, whatever the size.
** Polls the cancel flag. */
mb_status mb_halve_slices(const mb_file_slice *out, const mb_file_slice in[2], int64_t rows,
                          int64_t columns, mb_dtype dtype);

#endif
