/*
** A hash of lines of bytes that knows where each line belongs: the sums of lines in a place can be
** compared, whoever wrote them, in whatever pieces and order.
**
** The hash finds damage (bytes that were never written, that were written elsewhere, that changed).
** It is no protection against people.
*/
#ifndef MB_CORE_LINE_HASH_H
#define MB_CORE_LINE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The hash of `bytes` bytes at `place`, their distance from the beginning of what they belong to.
** Sums of hashes are taken modulo 2^64. */
uint64_t mb_line_hash(const void *line, size_t bytes, uint64_t place);

#endif
