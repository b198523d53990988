/*
** Decoders of chunks that Zarr arrays and some TIFF files hold, beside those of zlib: LZ4, Blosc 1
** (around LZ4, zlib or Zstandard, with bytes or bits of the elements shuffled), and Zstandard,
** whose decoder is the system's libzstd where it is there. All of them are what other programs
** write if nobody chooses.
**
** Nothing in a file is trusted: every decoder is bounded by its input and its output. Each returns
** how many bytes came out; a damaged input gives fewer than asked for.
*/
#ifndef MB_IO_CHUNK_CODECS_H
#define MB_IO_CHUNK_CODECS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* zlib's format or gzip's. */
size_t mb_unpack_zlib(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes);

/* A block of LZ4 without a frame. */
size_t mb_unpack_lz4(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes);

/* Is libzstd there? It is looked for once. */
bool mb_zstd_there(void);

/* A frame of Zstandard; 0 where libzstd is not there. */
size_t mb_unpack_zstd(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes);

/* A buffer of Blosc 1. `spare` has out_bytes, for blocks that were shuffled. */
size_t mb_unpack_blosc(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                       uint8_t *spare);

#endif
