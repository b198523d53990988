/*
** Decoders of chunks (chunk_codecs.h). Any thread may call them; the only state is the handle of
** libzstd, which is opened once and never closed.
*/
#include "files/chunk_codecs.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <zlib.h>

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static uint32_t little_endian(const uint8_t *in)
{
    return in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

size_t mb_unpack_zlib(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes)
{
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    if (inflateInit2(&stream, 15 + 32) != Z_OK)
        return 0;
    size_t at = 0, done = 0;
    int result = Z_OK;
    while (result == Z_OK && done < out_bytes) { /* the counters of zlib have 32 bits */
        const size_t give = in_bytes - at < 1u << 30 ? in_bytes - at : 1u << 30;
        const size_t room = out_bytes - done < 1u << 30 ? out_bytes - done : 1u << 30;
        stream.next_in = (Bytef *)(in + at);
        stream.avail_in = (uInt)give;
        stream.next_out = out + done;
        stream.avail_out = (uInt)room;
        result = inflate(&stream, Z_NO_FLUSH);
        at += give - stream.avail_in;
        done += room - stream.avail_out;
        if (give == stream.avail_in && room == stream.avail_out)
            break;
    }
    inflateEnd(&stream);
    return done;
}

/* ---- LZ4 ---- */

/* A length that begins in four bits and goes on in bytes while these are 255; false at the end of
** the input. */
static bool long_length(const uint8_t *in, size_t in_bytes, size_t *at, size_t *length)
{
    if (*length < 15)
        return true;
    for (;;) {
        if (*at == in_bytes)
            return false;
        const uint8_t more = in[(*at)++];
        *length += more;
        if (more < 255)
            return true;
    }
}

/* LZ4 block format: a token, literals, and a match of what is there already, until the input ends
** with literals. */
size_t mb_unpack_lz4(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes)
{
    size_t at = 0, done = 0;
    while (at < in_bytes && done < out_bytes) {
        const uint8_t token = in[at++];
        size_t literals = token >> 4, match = token & 15;
        if (!long_length(in, in_bytes, &at, &literals))
            break;
        const size_t n = least(literals, least(in_bytes - at, out_bytes - done));
        memcpy(out + done, in + at, n);
        at += n;
        done += n;
        if (n < literals || in_bytes - at < 2)
            break;
        const size_t distance = in[at] | (size_t)in[at + 1] << 8;
        at += 2;
        if (!long_length(in, in_bytes, &at, &match) || distance == 0 || distance > done)
            break;
        match = least(match + 4, out_bytes - done);
        for (size_t i = 0; i < match; i++) /* may overlap what it writes */
            out[done + i] = out[done + i - distance];
        done += match;
    }
    return done;
}

/* ---- Zstandard ---- */

typedef size_t (*zstd_decompress)(void *out, size_t out_bytes, const void *in, size_t in_bytes);
typedef unsigned (*zstd_is_error)(size_t code);

static pthread_once_t zstd_once = PTHREAD_ONCE_INIT;
static zstd_decompress decompress;
static zstd_is_error is_error;

static void find_zstd(void)
{
    void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return;
    void *first = dlsym(library, "ZSTD_decompress"), *second = dlsym(library, "ZSTD_isError");
    if (!first || !second)
        return;
    memcpy(&decompress, &first, sizeof first); /* ISO C has no cast of these */
    memcpy(&is_error, &second, sizeof second);
}

bool mb_zstd_there(void)
{
    pthread_once(&zstd_once, find_zstd);
    return decompress && is_error;
}

size_t mb_unpack_zstd(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes)
{
    if (!mb_zstd_there())
        return 0;
    const size_t done = decompress(out, out_bytes, in, in_bytes);
    return is_error(done) ? 0 : done;
}

/* ---- Blosc ---- */

enum {
    BLOSC_HEADER = 16,
    BLOSC_SHUFFLED = 0x01,
    BLOSC_COPIED = 0x02,
    BLOSC_BITS_SHUFFLED = 0x04,
    BLOSC_NOT_SPLIT = 0x10,
    BLOSC_MOST_SPLITS = 16,
    BLOSC_LEAST_SPLIT = 128, /* bytes of a part */
};

typedef struct blosc_header {
    uint32_t flags, format, element; /* format: 1 LZ4, 3 zlib, 4 Zstandard */
    size_t bytes, block;             /* of all, of a block */
} blosc_header;

static bool read_header(const uint8_t *in, size_t in_bytes, blosc_header *h)
{
    if (in_bytes < BLOSC_HEADER)
        return false;
    h->flags = in[2];
    h->format = in[2] >> 5;
    h->element = in[3];
    h->bytes = little_endian(in + 4);
    h->block = little_endian(in + 8);
    return h->element > 0 && (h->block > 0 || h->bytes == 0);
}

static size_t unpack_part(uint32_t format, const uint8_t *in, size_t in_bytes, uint8_t *out,
                          size_t out_bytes)
{
    switch (format) {
    case 1: return mb_unpack_lz4(in, in_bytes, out, out_bytes);
    case 3: return mb_unpack_zlib(in, in_bytes, out, out_bytes);
    case 4: return mb_unpack_zstd(in, in_bytes, out, out_bytes);
    default: return 0;
    }
}

/* The bytes of a block, as they were shuffled: one part, or one for each byte of an element. */
static bool unpack_block(const blosc_header *h, const uint8_t *in, size_t in_bytes, uint8_t *out,
                         size_t bytes)
{
    const bool split = !(h->flags & BLOSC_NOT_SPLIT) && h->element <= BLOSC_MOST_SPLITS &&
                       bytes / h->element >= BLOSC_LEAST_SPLIT && bytes == h->block;
    const size_t parts = split ? h->element : 1, each = bytes / parts;
    size_t at = 0;
    for (size_t i = 0; i < parts; i++) {
        if (in_bytes - at < 4)
            return false;
        const size_t packed = little_endian(in + at);
        at += 4;
        if (packed > in_bytes - at)
            return false;
        if (packed == each)
            memcpy(out + i * each, in + at, each);
        else if (unpack_part(h->format, in + at, packed, out + i * each, each) < each)
            return false;
        at += packed;
    }
    return true;
}

/* First bytes of all elements, second bytes, ...; what is no whole element follows. */
static void unshuffle(const uint8_t *from, uint8_t *to, size_t bytes, size_t element)
{
    const size_t n = bytes / element;
    for (size_t b = 0; b < element; b++)
        for (size_t i = 0; i < n; i++)
            to[i * element + b] = from[b * n + i];
    memcpy(to + n * element, from + n * element, bytes - n * element);
}

/* First bits of all elements, second bits, ..., where their number is a multiple of 8. */
static void unshuffle_bits(const uint8_t *from, uint8_t *to, size_t bytes, size_t element)
{
    const size_t n = bytes / element, row = n / 8;
    if (n % 8 != 0) {
        memcpy(to, from, bytes);
        return;
    }
    memset(to, 0, n * element);
    for (size_t bit = 0; bit < 8 * element; bit++)
        for (size_t i = 0; i < n; i++) {
            const unsigned one = from[bit * row + i / 8] >> (i % 8) & 1u;
            to[i * element + bit / 8] |= (uint8_t)(one << (bit % 8));
        }
    memcpy(to + n * element, from + n * element, bytes - n * element);
}

size_t mb_unpack_blosc(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                       uint8_t *spare)
{
    blosc_header h;
    if (!read_header(in, in_bytes, &h) || h.bytes > out_bytes)
        return 0;
    if (h.flags & BLOSC_COPIED) {
        const size_t n = least(h.bytes, in_bytes - BLOSC_HEADER);
        memcpy(out, in + BLOSC_HEADER, n);
        return n;
    }
    const bool shuffled = h.flags & BLOSC_SHUFFLED && h.element > 1;
    const bool bits = h.flags & BLOSC_BITS_SHUFFLED;
    size_t done = 0;
    for (size_t block = 0; done < h.bytes; block++) {
        const size_t place = BLOSC_HEADER + 4 * block, bytes = least(h.block, h.bytes - done);
        if (in_bytes < place + 4)
            return done;
        const size_t start = little_endian(in + place);
        uint8_t *own = shuffled || bits ? spare : out + done;
        if (start > in_bytes || !unpack_block(&h, in + start, in_bytes - start, own, bytes))
            return done;
        if (shuffled)
            unshuffle(own, out + done, bytes, h.element);
        else if (bits)
            unshuffle_bits(own, out + done, bytes, h.element);
        done += bytes;
    }
    return done;
}
