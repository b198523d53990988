/*
** Chunks of HDF5 datasets as registered filters write them: blocks of LZ4, Zstandard or bits behind
** a head that says how large they are (chunk_codecs.h has what is inside). Nothing in a chunk is
** trusted.
*/
#ifndef MB_FILES_FRAMED_CODECS_H
#define MB_FILES_FRAMED_CODECS_H

#include "files/codecs/chunk_codecs.h"

/* The numbers by which the HDF Group has registered the filters. */
typedef enum mb_filter {
    MB_FILTER_BLOSC = 32001,
    MB_FILTER_LZ4 = 32004,
    MB_FILTER_BITSHUFFLE = 32008,
    MB_FILTER_ZSTD = 32015,
} mb_filter;

#define MB_FILTER_VALUES 8

/* A filter of a dataset: its number and the values that were stored with it. */
typedef struct mb_filtered {
    int id;
    size_t count; /* of the values that are known */
    unsigned values[MB_FILTER_VALUES];
} mb_filtered;

/* Is it one of these filters? */
bool mb_filter_known(int id);
/* NULL where chunks of the filter can be decoded, or it is none of these; else why not, and the
** remedy (mb_codec_missing). */
const char *mb_filter_missing(const mb_filtered *filter);
/* How many bytes a chunk says that it holds; false where it is damaged, or of no such filter. */
bool mb_filter_bytes(const mb_filtered *filter, const uint8_t *in, size_t in_bytes,
                     uint64_t *bytes);

/* Decodes a chunk; returns how many bytes came out: fewer than `out_bytes` where it is damaged or
** holds fewer, none where it holds more. */
size_t mb_filter_unpack(const mb_filtered *filter, const uint8_t *in, size_t in_bytes, uint8_t *out,
                        size_t out_bytes);

/* Puts the bits of `count` elements of `element` bytes back into order: `from` has the first bits
** of all elements, then their second bits, and so on. `count` is a multiple of 8. */
void mb_unshuffle_bits(const uint8_t *from, uint8_t *to, size_t count, size_t element);

#endif
