/*
** Decoders of chunks (chunk_codecs.h). The only state are the functions of the libraries, which are
** looked up once.
*/
#include "files/codecs/chunk_codecs.h"

#include "core/shape.h"
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define MOST_DROPPED ((size_t)64 << 20)

/* ---- the libraries ---- */

static int (*lz4_decompress)(const char *in, char *out, int in_bytes, int out_bytes);
static size_t (*zstd_decompress)(void *out, size_t out_bytes, const void *in, size_t in_bytes);
static unsigned (*zstd_is_error)(size_t code);
static unsigned long long (*zstd_content)(const void *in, size_t in_bytes);
static int (*blosc_decompress)(const void *in, void *out, size_t out_bytes, int threads);
static int (*blosc_validate)(const void *in, size_t in_bytes, size_t *out_bytes);
static const char *(*blosc_compressors)(void);

#define MOST_FUNCTIONS 3

static struct library {
    const char *name, *file, *package;
    struct {
        const char *name;
        void *place; /* of a pointer to the function */
    } functions[MOST_FUNCTIONS];
    char missing[160]; /* why it cannot be used, or empty */
} libraries[MB_CODEC_COUNT] = {
    [MB_CODEC_LZ4] = {.name = "lz4",
                      .file = "liblz4.so.1",
                      .package = "liblz4-1",
                      .functions = {{"LZ4_decompress_safe", &lz4_decompress}}},
    [MB_CODEC_ZSTD] = {.name = "zstd",
                       .file = "libzstd.so.1",
                       .package = "libzstd1",
                       .functions = {{"ZSTD_decompress", &zstd_decompress},
                                     {"ZSTD_isError", &zstd_is_error},
                                     {"ZSTD_getFrameContentSize", &zstd_content}}},
    [MB_CODEC_BLOSC] = {.name = "blosc",
                        .file = "libblosc.so.1",
                        .package = "libblosc1",
                        .functions = {{"blosc_decompress_ctx", &blosc_decompress},
                                      {"blosc_cbuffer_validate", &blosc_validate},
                                      {"blosc_list_compressors", &blosc_compressors}}},
};

static char compressors[200]; /* inside libblosc: "blosclz,lz4,..." */
static pthread_once_t libraries_once = PTHREAD_ONCE_INIT;

/* A library without one of its functions is older than the formats it must decode safely. */
static void open_library(struct library *library)
{
    void *handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
    bool complete = handle != NULL;
    for (int i = 0; i < MOST_FUNCTIONS && library->functions[i].name && complete; i++) {
        void *function = dlsym(handle, library->functions[i].name);
        complete = function != NULL;
        memcpy(library->functions[i].place, &function, sizeof function); /* ISO C casts none */
    }
    if (!complete)
        snprintf(library->missing, sizeof library->missing,
                 "the library %s, which decodes it, is %s on this machine: install the Debian "
                 "package %s",
                 library->file, handle ? "too old" : "not", library->package);
}

static void open_libraries(void)
{
    for (int codec = 0; codec < MB_CODEC_COUNT; codec++)
        open_library(&libraries[codec]);
    if (libraries[MB_CODEC_BLOSC].missing[0] == '\0')
        snprintf(compressors, sizeof compressors, "%s", blosc_compressors());
}

/* Is `name` one of a list that commas divide? */
static bool is_listed(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return false;
}

const char *mb_codec_name(mb_codec codec)
{
    return libraries[codec].name;
}

const char *mb_codec_missing(mb_codec codec, const char *inner)
{
    pthread_once(&libraries_once, open_libraries);
    if (libraries[codec].missing[0] != '\0')
        return libraries[codec].missing;
    if (codec == MB_CODEC_BLOSC && inner && !is_listed(compressors, inner))
        return "the library libblosc.so.1 on this machine was built without its compressor: "
               "install the Debian package libblosc1";
    return NULL;
}

static bool is_there(mb_codec codec)
{
    return mb_codec_missing(codec, NULL) == NULL;
}

/* ---- the decoders ---- */

static uint32_t little_endian(const uint8_t *in)
{
    return in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

/* Goes on from place `at` of the input to its checksum, which follows the last byte of the data.
** Data behind what was asked for (the rows of a strip that the page has not) are dropped, up to
** MOST_DROPPED. false: the data are damaged. `unchecked`: the input ends before the checksum does. */
static bool ends_well(z_stream *stream, const uint8_t *in, size_t in_bytes, size_t at,
                      bool *unchecked)
{
    uint8_t dropped[4096];
    int result = Z_OK;
    for (size_t done = 0; result == Z_OK && done < MOST_DROPPED; done += sizeof dropped) {
        const size_t give = in_bytes - at < 1u << 30 ? in_bytes - at : 1u << 30;
        stream->next_in = (Bytef *)(in + at);
        stream->avail_in = (uInt)give;
        stream->next_out = dropped;
        stream->avail_out = sizeof dropped;
        result = inflate(stream, Z_NO_FLUSH);
        at += give - stream->avail_in;
    }
    if (result != Z_STREAM_END && at == in_bytes)
        *unchecked = true;
    return result != Z_DATA_ERROR;
}

size_t mb_unpack_zlib(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                      bool *unchecked)
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
    if (done == out_bytes && result == Z_OK && !ends_well(&stream, in, in_bytes, at, unchecked))
        done = 0;
    inflateEnd(&stream);
    return result == Z_DATA_ERROR ? 0 : done;
}

size_t mb_unpack_lz4(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes)
{
    if (!is_there(MB_CODEC_LZ4) || in_bytes > INT_MAX)
        return 0;
    /* A block of LZ4 has at most 2113929216 bytes. */
    const int room = out_bytes < INT_MAX ? (int)out_bytes : INT_MAX;
    const int done = lz4_decompress((const char *)in, (char *)out, (int)in_bytes, room);
    return done > 0 ? (size_t)done : 0;
}

size_t mb_unpack_sized_lz4(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes)
{
    if (in_bytes < 4)
        return 0;
    const size_t said = little_endian(in);
    const size_t done = said <= out_bytes ? mb_unpack_lz4(in + 4, in_bytes - 4, out, said) : 0;
    return done == said ? done : 0;
}

size_t mb_unpack_zstd(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes)
{
    if (!is_there(MB_CODEC_ZSTD))
        return 0;
    const size_t done = zstd_decompress(out, out_bytes, in, in_bytes);
    return zstd_is_error(done) ? 0 : done;
}

bool mb_zstd_says(const uint8_t *in, size_t in_bytes, uint64_t *bytes)
{
    const unsigned long long unknown = ULLONG_MAX, wrong = ULLONG_MAX - 1; /* of zstd.h */
    if (!is_there(MB_CODEC_ZSTD))
        return false;
    const unsigned long long said = zstd_content(in, in_bytes);
    *bytes = said == unknown ? MB_CODEC_UNSAID : said;
    return said != wrong;
}

/* Blosc's header: version, version of the compressor, flags, bytes of an element; then the bytes of
** all, of a block, and of the buffer. What follows the buffer is not looked at. */
enum { BLOSC_HEADER = 16, BLOSC_STATE = 128 << 10 };

bool mb_blosc_says(const uint8_t *in, size_t in_bytes, uint64_t *bytes)
{
    if (!is_there(MB_CODEC_BLOSC) || in_bytes < BLOSC_HEADER)
        return false;
    const size_t block = little_endian(in + 8), own = little_endian(in + 12);
    size_t said = 0;
    *bytes = little_endian(in + 4);
    return block <= *bytes && own <= in_bytes && own >= BLOSC_HEADER &&
           blosc_validate(in, own, &said) >= 0 && said == *bytes;
}

size_t mb_unpack_blosc(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes)
{
    uint64_t bytes = 0;
    if (!mb_blosc_says(in, in_bytes, &bytes) || bytes > out_bytes)
        return 0;
    const int done = blosc_decompress(in, out, (size_t)bytes, 1);
    return done > 0 ? (size_t)done : 0;
}

uint64_t mb_blosc_own_bytes(uint64_t out_bytes)
{
    return mb_bytes_add(mb_bytes_mul(2, out_bytes), BLOSC_STATE);
}
