/*
** The pixels of a TIFF page: strips and tiles, plain or compressed, into a host array. What a page
** consists of is parsed in Lua (bindings/moonbeam/tiff/init.lua); here are the bytes.
**
** Decoders of our own, a few hundred lines, rather than libtiff: that would bring JPEG, WebP, LERC,
** JBIG and more along, and cannot read ImageJ's form of files above 4 GB. Deflate is zlib's.
** Nothing in a file is trusted: every decoder is bounded by its input and its output.
*/
#ifndef MB_IO_TIFF_SEGMENTS_H
#define MB_IO_TIFF_SEGMENTS_H

#include "core/samples.h"
#include "files/rawfile.h"

enum { /* tag 259 */
       MB_TIFF_PLAIN = 1,
       MB_TIFF_LZW = 5,
       MB_TIFF_DEFLATE = 8,
       MB_TIFF_DEFLATE_OLD = 32946,
       MB_TIFF_PACKBITS = 32773,
       MB_TIFF_ZSTD = 50000,
       MB_CHUNK_BLOSC = -1, /* no TIFF file has these: chunks of a Zarr array */
       MB_CHUNK_LZ4 = -2
};

typedef struct mb_tiff_page {
    bool swap;          /* big-endian */
    mb_samples samples; /* widened, unless MB_SAMPLES_AS_STORED */
    int64_t
        bits; /* of a sample of MB_SAMPLES_BITS, 1 to 15: most significant bit first, with nothing
                  ** between samples; a row begins with a byte */
    const mb_samples_place *place; /* in the array that is read; NULL: the page is all of it */
    int64_t compression;
    int64_t predictor; /* 1 none, 2 differences along rows, 3 the same for floating point */
    int64_t rows, columns;
    int64_t segment_rows, segment_columns; /* of a tile; of a strip: RowsPerStrip, columns */
    int64_t count;                         /* segments */
    const uint64_t *offsets, *bytes;       /* in the file, row-major over the page */
} mb_tiff_page;

/* Scratch that a page of these segments needs for one decoding thread, to be read as `dtype`; 0
** where none is needed. */
uint64_t mb_tiff_scratch_bytes(const mb_tiff_page *page, mb_dtype dtype);

/* Reads rows first_row ... and columns first_column ... of the page into `array` (row, column), a
** host array with a dense last axis; its element type gives the samples' size, where they are not
** widened. `scratch` (u8, host) has room for one or more threads; NULL where mb_tiff_scratch_bytes
** is 0. */
mb_status mb_tiff_read(mb_rawfile *file, const mb_tiff_page *page, int64_t first_row,
                       int64_t first_column, mb_array *array, mb_array *scratch);

/* A page of one segment: a chunk of a Zarr array. */
typedef struct mb_tiff_chunk {
    mb_rawfile *file;
    mb_tiff_page page;
} mb_tiff_chunk;

/* Reads chunks, all of the same extents, to the first elements of `array` (chunk, row, column), which
** is contiguous; otherwise as mb_tiff_read. */
mb_status mb_tiff_read_chunks(const mb_tiff_chunk *chunks, int64_t count, const mb_array *array,
                              mb_array *scratch);

#endif
