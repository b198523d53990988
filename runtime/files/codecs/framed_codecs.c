/*
** Chunks as registered HDF5 filters write them (framed_codecs.h).
**
** LZ4 (32004): the bytes of all in 8 bytes and of a block in 4, most significant first; then each
** block behind its packed size in 4 bytes. A block whose packed size is its size is stored.
** Bitshuffle (32008): the same head where blocks are compressed, else none; elements in blocks of a
** multiple of 8, the bits of each block shuffled, then compressed; the last block takes what is left
** of whole eights, and at most 7 elements follow as they are. No Debian package has the library of
** bitshuffle, and libblosc hands its own out behind Blosc's header only: the order of bits is put
** right here.
*/
#include "files/codecs/framed_codecs.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 12, MOST_ELEMENT = 256, DEFAULT_BLOCK = 8192, LEAST_BLOCK = 128 };
enum { BITS_PLAIN = 0, BITS_LZ4 = 2, BITS_ZSTD = 3 }; /* value 4 of bitshuffle */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static uint32_t big_endian(const uint8_t *in)
{
    return (uint32_t)in[0] << 24 | (uint32_t)in[1] << 16 | (uint32_t)in[2] << 8 | in[3];
}

static unsigned value_of(const mb_filtered *filter, size_t index)
{
    return index < filter->count && index < MB_FILTER_VALUES ? filter->values[index] : 0;
}

static unsigned bits_codec(const mb_filtered *filter)
{
    return value_of(filter, 4);
}

bool mb_filter_known(int id)
{
    return id == MB_FILTER_BLOSC || id == MB_FILTER_LZ4 || id == MB_FILTER_BITSHUFFLE ||
           id == MB_FILTER_ZSTD;
}

/* Names of Blosc's compressors by the number in value 6 of its filter. */
static const char *blosc_inner(const mb_filtered *filter)
{
    static const char *const NAMES[] = {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};
    const unsigned number = value_of(filter, 6);
    return number < sizeof NAMES / sizeof *NAMES ? NAMES[number] : NULL;
}

const char *mb_filter_missing(const mb_filtered *filter)
{
    switch (filter->id) {
    case MB_FILTER_BLOSC: return mb_codec_missing(MB_CODEC_BLOSC, blosc_inner(filter));
    case MB_FILTER_LZ4: return mb_codec_missing(MB_CODEC_LZ4, NULL);
    case MB_FILTER_ZSTD: return mb_codec_missing(MB_CODEC_ZSTD, NULL);
    case MB_FILTER_BITSHUFFLE:
        switch (bits_codec(filter)) {
        case BITS_PLAIN: return NULL;
        case BITS_LZ4: return mb_codec_missing(MB_CODEC_LZ4, NULL);
        case BITS_ZSTD: return mb_codec_missing(MB_CODEC_ZSTD, NULL);
        default: return "its blocks are compressed by neither LZ4 nor Zstandard: save it otherwise";
        }
    default: return NULL;
    }
}

bool mb_filter_bytes(const mb_filtered *filter, const uint8_t *in, size_t in_bytes, uint64_t *bytes)
{
    switch (filter->id) {
    case MB_FILTER_BLOSC: return mb_blosc_says(in, in_bytes, bytes);
    case MB_FILTER_ZSTD: return mb_zstd_says(in, in_bytes, bytes);
    case MB_FILTER_BITSHUFFLE:
        if (bits_codec(filter) == BITS_PLAIN) {
            *bytes = in_bytes;
            return true;
        }
        break;
    case MB_FILTER_LZ4: break;
    default: return false;
    }
    if (in_bytes < HEAD_BYTES)
        return false;
    *bytes = (uint64_t)big_endian(in) << 32 | big_endian(in + 4);
    return true;
}

/* The next part of a chunk behind its packed size, into `out`; false where it is damaged. */
static bool unpack_part(unsigned codec, const uint8_t *in, size_t in_bytes, size_t *at,
                        uint8_t *out, size_t bytes)
{
    if (in_bytes - *at < 4)
        return false;
    const size_t packed = big_endian(in + *at);
    *at += 4;
    if (packed > in_bytes - *at)
        return false;
    const uint8_t *from = in + *at;
    *at += packed;
    return bytes == (codec == BITS_ZSTD ? mb_unpack_zstd(from, packed, out, bytes)
                                        : mb_unpack_lz4(from, packed, out, bytes));
}

static size_t unpack_lz4_blocks(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes)
{
    const size_t block = in_bytes < HEAD_BYTES ? 0 : big_endian(in + 8);
    size_t at = HEAD_BYTES, done = 0;
    while (block > 0 && done < out_bytes) {
        const size_t bytes = least(block, out_bytes - done);
        if (in_bytes - at >= 4 && big_endian(in + at) == bytes) {
            if (bytes > in_bytes - at - 4)
                break;
            memcpy(out + done, in + at + 4, bytes);
            at += 4 + bytes;
        } else if (!unpack_part(BITS_LZ4, in, in_bytes, &at, out + done, bytes)) {
            break;
        }
        done += bytes;
    }
    return done;
}

/* ---- bitshuffle ---- */

/* Elements of a block where nothing says how many: as the library that writes them does. */
static size_t default_block(size_t element)
{
    const size_t block = DEFAULT_BLOCK / element / 8 * 8;
    return block > LEAST_BLOCK ? block : LEAST_BLOCK;
}

static size_t unpack_bits(const mb_filtered *filter, const uint8_t *in, size_t in_bytes,
                          uint8_t *out, size_t out_bytes)
{
    const unsigned codec = bits_codec(filter);
    const size_t element = value_of(filter, 2);
    if (element < 1 || element > MOST_ELEMENT || out_bytes % element != 0 ||
        (codec != BITS_PLAIN && in_bytes < HEAD_BYTES))
        return 0;
    size_t block = codec == BITS_PLAIN ? value_of(filter, 3) : big_endian(in + 8) / element;
    if (block == 0 && codec == BITS_PLAIN)
        block = default_block(element);
    if (block == 0 || block % 8 != 0)
        return 0;
    const size_t elements = out_bytes / element, tail = elements % 8 * element;
    const size_t most = least(block, elements / 8 * 8) * element;
    size_t at = codec == BITS_PLAIN ? 0 : HEAD_BYTES, done = 0;
    uint8_t *spare = codec == BITS_PLAIN || most == 0 ? NULL : malloc(most);
    if (!spare && codec != BITS_PLAIN && most > 0)
        return 0;
    while (done < out_bytes - tail) {
        const size_t bytes = least(block * element, out_bytes - tail - done);
        const uint8_t *from = spare;
        if (codec == BITS_PLAIN) {
            if (bytes > in_bytes - at)
                break;
            from = in + at;
            at += bytes;
        } else if (!unpack_part(codec, in, in_bytes, &at, spare, bytes)) {
            break;
        }
        mb_unshuffle_bits(from, out + done, bytes / element, element);
        done += bytes;
    }
    free(spare);
    if (done < out_bytes - tail || tail > in_bytes - at)
        return done;
    memcpy(out + done, in + at, tail);
    return out_bytes;
}

size_t mb_filter_unpack(const mb_filtered *filter, const uint8_t *in, size_t in_bytes, uint8_t *out,
                        size_t out_bytes)
{
    uint64_t said = 0;
    if (!mb_filter_bytes(filter, in, in_bytes, &said))
        return 0;
    if (said != MB_CODEC_UNSAID && said != out_bytes)
        return 0;
    switch (filter->id) {
    case MB_FILTER_BLOSC: return mb_unpack_blosc(in, in_bytes, out, out_bytes);
    case MB_FILTER_LZ4: return unpack_lz4_blocks(in, in_bytes, out, out_bytes);
    case MB_FILTER_ZSTD: return mb_unpack_zstd(in, in_bytes, out, out_bytes);
    case MB_FILTER_BITSHUFFLE: return unpack_bits(filter, in, in_bytes, out, out_bytes);
    default: return 0;
    }
}

/* Exchanges rows and columns of a matrix of 8 x 8 bits in each of 8 words: bit i of byte g of word
** j goes to bit j of byte g of word i. Byte g of word i is then one of element 8 g + i. */
static void transpose(uint64_t w[8])
{
    static const uint64_t MASKS[3] = {0x5555555555555555u, 0x3333333333333333u,
                                      0x0f0f0f0f0f0f0f0fu};
    for (int stage = 0; stage < 3; stage++) {
        const int apart = 1 << stage;
        for (int j = 0; j < 8; j++) {
            if (j & apart)
                continue;
            const uint64_t moved = ((w[j] >> apart) ^ w[j + apart]) & MASKS[stage];
            w[j + apart] ^= moved;
            w[j] ^= moved << apart;
        }
    }
}

void mb_unshuffle_bits(const uint8_t *from, uint8_t *to, size_t count, size_t element)
{
    const size_t row = count / 8;
    for (size_t first = 0; first < row; first += 8) {
        const size_t groups = least(8, row - first);
        for (size_t b = 0; b < element; b++) {
            uint64_t w[8] = {0};
            const uint8_t *rows = from + 8 * b * row + first;
            if (groups == 8) {
                for (size_t j = 0; j < 8; j++)
                    memcpy(&w[j], rows + j * row, 8);
            } else {
                for (size_t j = 0; j < 8; j++)
                    memcpy(&w[j], rows + j * row, groups);
            }
            transpose(w);
            uint8_t *own = to + 8 * first * element + b;
            for (size_t g = 0; g < groups; g++)
                for (size_t i = 0; i < 8; i++)
                    own[(8 * g + i) * element] = ((const uint8_t *)&w[i])[g];
        }
    }
}
