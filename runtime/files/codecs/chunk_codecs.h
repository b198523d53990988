/*
** Decoders of chunks that Zarr arrays, HDF5 datasets and some TIFF files hold, beside those of
** zlib: LZ4, Zstandard and Blosc 1, each by the library of its authors. A library is opened where
** it is first asked for, and stays open; where it is not on the machine, mb_codec_missing names the
** package that has it. The libraries are no part of the program's own links: a machine without
** them reads all files but these.
**
** Nothing in a file is trusted: every decoder is bounded by its input and its output, and sizes of
** headers are compared with these before anything is done. Each returns how many bytes came out; a
** damaged input gives fewer than asked for. Any thread may call; none of them starts threads.
*/
#ifndef MB_FILES_CHUNK_CODECS_H
#define MB_FILES_CHUNK_CODECS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum mb_codec { MB_CODEC_LZ4, MB_CODEC_ZSTD, MB_CODEC_BLOSC, MB_CODEC_COUNT } mb_codec;

/* "lz4", "zstd", "blosc". */
const char *mb_codec_name(mb_codec codec);

/* NULL where the codec can be decoded; else why not, and the remedy: "the library libblosc.so.1,
** ...". `inner` (may be NULL): the compressor inside Blosc. */
const char *mb_codec_missing(mb_codec codec, const char *inner);

/* zlib's format or gzip's. 0 where the checksum at the end is not that of the data. An end that is
** cut off behind complete data, as some writers of TIFF leave it, is none to compare: `unchecked`
** is set to true then, and is not changed otherwise. */
size_t mb_unpack_zlib(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                      bool *unchecked);

/* A block of LZ4 without a frame. */
size_t mb_unpack_lz4(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes);

/* The same behind its size, in four bytes, little-endian: what numcodecs calls LZ4. */
size_t mb_unpack_sized_lz4(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes);

/* A frame of Zstandard. */
size_t mb_unpack_zstd(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes);

/* A buffer of Blosc 1. While it decodes, libblosc takes mb_blosc_own_bytes by itself. */
size_t mb_unpack_blosc(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes);

/* How many bytes a buffer of Blosc, or a frame of Zstandard, says that it holds; false where it is
** damaged. A frame need not say it: MB_CODEC_UNSAID. */
#define MB_CODEC_UNSAID UINT64_MAX
bool mb_blosc_says(const uint8_t *in, size_t in_bytes, uint64_t *bytes);
bool mb_zstd_says(const uint8_t *in, size_t in_bytes, uint64_t *bytes);

/* The most that libblosc takes for a buffer of so many decoded bytes: two of its blocks, which are
** at most the buffer, and 128 KiB for its compressor's state and tables (96 KiB of Zstandard 1.5 were
** measured). */
uint64_t mb_blosc_own_bytes(uint64_t out_bytes);

#endif
