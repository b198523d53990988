/*
** The registered filters that are decoded by files/codecs: Blosc, LZ4, bitshuffle and Zstandard.
** libhdf5 is told of those whose libraries are there; a filter whose library is missing is left to
** the plug-ins of libhdf5. They decode only: nothing is written with them.
**
** A filter is not told how large a chunk is, and libhdf5 does not look at how many bytes came out
** before it takes a chunk's worth of them. So whoever is about to read says what is to come, under
** the lock of libhdf5, and memory is taken and filled by that.
*/
#include "files/h5/library/h5library.h"

#include <stdio.h>
#include <string.h>

static const struct {
    H5Z_filter_t id;
    const char *name, *package;
} FILTERS[] = {
    {H5Z_FILTER_DEFLATE, "deflate", NULL},
    {H5Z_FILTER_SHUFFLE, "shuffle", NULL},
    {H5Z_FILTER_FLETCHER32, "fletcher32", NULL},
    {H5Z_FILTER_SZIP, "szip", NULL},
    {H5Z_FILTER_NBIT, "nbit", NULL},
    {H5Z_FILTER_SCALEOFFSET, "scaleoffset", NULL},
    {307, "bzip2", "hdf5-filter-plugin"},
    {32000, "lzf", NULL},
    {MB_FILTER_BLOSC, "blosc", NULL},
    {MB_FILTER_LZ4, "lz4", NULL},
    {MB_FILTER_BITSHUFFLE, "bitshuffle", NULL},
    {32013, "zfp", "hdf5-filter-plugin-zfp-serial"},
    {MB_FILTER_ZSTD, "zstd", NULL},
    {32026, "blosc2", NULL},
};

const char *mb_h5_filter_name(H5Z_filter_t id, const char **package)
{
    *package = NULL;
    for (size_t i = 0; i < sizeof FILTERS / sizeof FILTERS[0]; i++)
        if (FILTERS[i].id == id) {
            *package = FILTERS[i].package;
            return FILTERS[i].name;
        }
    return NULL;
}

static h5_expected expected;
static bool registered[4];

void mb_h5_expect(const h5_expected *chunk)
{
    expected = *chunk;
}

/* Room for what comes of a chunk, and how many bytes; 0: the chunk is damaged. */
static size_t decode(const mb_filtered *filter, size_t bytes, size_t *room, void **chunk)
{
    uint64_t said = 0;
    if (!mb_filter_bytes(filter, *chunk, bytes, &said))
        return 0;
    if (said == MB_CODEC_UNSAID)
        said = expected.exact;
    if (said == 0 || said > expected.most || (expected.exact > 0 && said != expected.exact))
        return 0;
    /* Where chunks differ in size the largest may be taken for this one. */
    unsigned char *out = H5allocate_memory((size_t)expected.most, false);
    if (!out)
        return 0;
    const size_t done = mb_filter_unpack(filter, *chunk, bytes, out, (size_t)said);
    if (done != said) {
        H5free_memory(out);
        return 0;
    }
    memset(out + done, 0, (size_t)expected.most - done);
    H5free_memory(*chunk);
    *chunk = out;
    *room = (size_t)expected.most;
    return done;
}

static size_t filter_of(int id, unsigned flags, size_t count, const unsigned *values, size_t bytes,
                        size_t *room, void **chunk)
{
    const mb_filtered filter = mb_h5_filtered(id, count, values);
    return flags & H5Z_FLAG_REVERSE ? decode(&filter, bytes, room, chunk) : 0;
}

#define FILTER(name, id)                                                                           \
    static size_t name(unsigned flags, size_t count, const unsigned values[], size_t bytes,        \
                       size_t *room, void **chunk)                                                 \
    {                                                                                              \
        return filter_of(id, flags, count, values, bytes, room, chunk);                            \
    }
FILTER(blosc, MB_FILTER_BLOSC)
FILTER(lz4, MB_FILTER_LZ4)
FILTER(bitshuffle, MB_FILTER_BITSHUFFLE)
FILTER(zstd, MB_FILTER_ZSTD)

static const int NUMBERS[] = {MB_FILTER_BLOSC, MB_FILTER_LZ4, MB_FILTER_BITSHUFFLE, MB_FILTER_ZSTD};

/* Is it decoded here, and not by a plug-in of libhdf5? */
static bool decodes_itself(int id)
{
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++)
        if (NUMBERS[i] == id)
            return registered[i];
    return false;
}

void mb_h5_register_filters(void)
{
    const H5Z_class2_t classes[] = {
        {H5Z_CLASS_T_VERS, MB_FILTER_BLOSC, 0, 1, "blosc", NULL, NULL, blosc},
        {H5Z_CLASS_T_VERS, MB_FILTER_LZ4, 0, 1, "lz4", NULL, NULL, lz4},
        {H5Z_CLASS_T_VERS, MB_FILTER_BITSHUFFLE, 0, 1, "bitshuffle", NULL, NULL, bitshuffle},
        {H5Z_CLASS_T_VERS, MB_FILTER_ZSTD, 0, 1, "zstd", NULL, NULL, zstd},
    };
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        const mb_filtered filter = {.id = classes[i].id};
        registered[i] = !mb_filter_missing(&filter) && H5Zregister(&classes[i]) >= 0;
    }
}

mb_filtered mb_h5_filtered(int id, size_t count, const unsigned *values)
{
    mb_filtered filter = {.id = id, .count = count < MB_FILTER_VALUES ? count : MB_FILTER_VALUES};
    for (size_t i = 0; i < filter.count; i++)
        filter.values[i] = values[i];
    return filter;
}

mb_filtered mb_h5_get_filter(hid_t properties, int index)
{
    unsigned flags = 0, values[MB_FILTER_VALUES] = {0};
    size_t count = MB_FILTER_VALUES;
    const H5Z_filter_t id =
        H5Pget_filter2(properties, (unsigned)index, &flags, &count, values, 0, NULL, NULL);
    return mb_h5_filtered(id, count, values);
}

h5_expected mb_h5_expected_of(hid_t properties, size_t element)
{
    hsize_t extents[MB_H5_MAX_RANK] = {0};
    h5_expected result = {0, 0};
    if (H5Pget_layout(properties) != H5D_CHUNKED)
        return result;
    const int rank = H5Pget_chunk(properties, MB_H5_MAX_RANK, extents);
    const int count = H5Pget_nfilters(properties);
    uint64_t chunk = element;
    for (int axis = 0; axis < rank && axis < MB_H5_MAX_RANK; axis++)
        chunk = mb_bytes_mul(chunk, extents[axis]);
    result.exact = chunk;
    int decoders = 0;
    for (int i = 0; i < count; i++) {
        const mb_filtered filter = mb_h5_get_filter(properties, i);
        if (mb_filter_known(filter.id))
            decoders++;
        else if (filter.id == H5Z_FILTER_FLETCHER32 && decoders == 0)
            result.exact = mb_bytes_add(result.exact, 4); /* its sum is compressed, too */
        else if (filter.id != H5Z_FILTER_SHUFFLE && filter.id != H5Z_FILTER_FLETCHER32)
            decoders = count + 1;
    }
    result.most = mb_bytes_add(mb_bytes_add(chunk, chunk / 64), 4096);
    if (decoders > 1)
        result.exact = 0;
    return result;
}

void mb_h5_join_expected(h5_expected *all, const h5_expected *one)
{
    if (one->most == 0)
        return;
    if (all->most > 0 && all->exact != one->exact)
        all->exact = 0;
    else
        all->exact = one->exact;
    if (one->most > all->most)
        all->most = one->most;
}

bool mb_h5_filters_there(hid_t properties, char *why, size_t bytes)
{
    const int count = H5Pget_nfilters(properties);
    for (int i = 0; i < count; i++) {
        unsigned flags;
        size_t values = 0;
        char own[40] = "";
        const char *package;
        const H5Z_filter_t id =
            H5Pget_filter2(properties, (unsigned)i, &flags, &values, NULL, sizeof own, own, NULL);
        const mb_filtered filter = mb_h5_get_filter(properties, i);
        const char *missing = mb_filter_missing(&filter);
        if (H5Zfilter_avail(id) > 0 && !(missing && decodes_itself(id)))
            continue;
        const char *name = mb_h5_filter_name(id, &package);
        if (missing)
            snprintf(why, bytes, "is compressed by filter %d (%s): %s", (int)id, name, missing);
        else
            snprintf(why, bytes,
                     "is compressed by filter %d (%s), which HDF5 does not find: install %s, and "
                     "name the plug-in's folder in HDF5_PLUGIN_PATH",
                     (int)id, name ? name : own,
                     package ? package : "its plug-in (python3-hdf5plugin has many)");
        return false;
    }
    return true;
}
