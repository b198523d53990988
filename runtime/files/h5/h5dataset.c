/*
** HDF5 datasets: element types, description, handles, creation with their disk space. Their data:
** h5slab.c. A dataset belongs to its file's list; closing the file leaves it closed (file == NULL,
** id == -1).
*/
#define _GNU_SOURCE
#include "files/h5/h5internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

/* Datasets from here on take their disk space when they are created. */
#define RESERVE_BYTES ((uint64_t)1 << 20)
/* Decoded chunks larger than this are not cached between reads. */
#define CACHE_BYTES ((size_t)64 << 20)

/* ---- element types ---- */

hid_t mb_h5_type_of(mb_dtype dtype)
{
    static const char *const PARTS[2] = {"r", "i"}; /* as h5py and NumPy users know it */
    hid_t type, real;
    switch (dtype) {
    case MB_U8: return H5Tcopy(H5T_NATIVE_UINT8);
    case MB_U16: return H5Tcopy(H5T_NATIVE_UINT16);
    case MB_I32: return H5Tcopy(H5T_NATIVE_INT32);
    case MB_F32: return H5Tcopy(H5T_NATIVE_FLOAT);
    case MB_F64: return H5Tcopy(H5T_NATIVE_DOUBLE);
    case MB_F16:
        type = H5Tcopy(H5T_NATIVE_FLOAT);
        H5Tset_fields(type, 15, 10, 5, 0, 10);
        H5Tset_size(type, 2);
        H5Tset_ebias(type, 15);
        return type;
    case MB_C64:
    case MB_C128:
        real = dtype == MB_C64 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
        type = H5Tcreate(H5T_COMPOUND, 2 * H5Tget_size(real));
        for (size_t i = 0; i < 2; i++)
            H5Tinsert(type, PARTS[i], i * H5Tget_size(real), real);
        return type;
    case MB_DTYPE_COUNT: break;
    }
    return -1;
}

/* Is this an element of a size that computers have, with its bits inside and, of floats, the
** exponent's bias of IEEE 754? libhdf5 believes what a file says; a damaged bias scales every
** value by a power of two. */
static bool sound_number(hid_t type)
{
    size_t sign, exponent, exponent_bits, mantissa, mantissa_bits;
    const size_t bytes = H5Tget_size(type), bits = 8 * bytes;
    const H5T_class_t class = H5Tget_class(type);
    const int offset = H5Tget_offset(type);
    if (offset < 0 || (size_t)offset + H5Tget_precision(type) > bits)
        return false;
    if (class == H5T_INTEGER)
        return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    return class == H5T_FLOAT && (bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16) &&
           H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >= 0 &&
           sign < bits && exponent + exponent_bits <= bits && mantissa + mantissa_bits <= bits &&
           exponent_bits > 0 && exponent_bits < 32 &&
           H5Tget_ebias(type) == ((size_t)1 << (exponent_bits - 1)) - 1;
}

static bool is_complex(hid_t type, size_t *bytes)
{
    bool result = false;
    if (H5Tget_class(type) != H5T_COMPOUND || H5Tget_nmembers(type) != 2)
        return false;
    char *first = H5Tget_member_name(type, 0), *second = H5Tget_member_name(type, 1);
    const hid_t real = H5Tget_member_type(type, 0), imaginary = H5Tget_member_type(type, 1);
    if (first != NULL && second != NULL && strcmp(first, "r") == 0 && strcmp(second, "i") == 0)
        result = H5Tget_class(real) == H5T_FLOAT && H5Tequal(real, imaginary) > 0 &&
                 sound_number(real) && H5Tget_size(type) == 2 * H5Tget_size(real);
    *bytes = H5Tget_size(real);
    H5free_memory(first);
    H5free_memory(second);
    H5Tclose(real);
    H5Tclose(imaginary);
    return result;
}

static void classify_integer(mb_h5_info *info, hid_t type)
{
    const bool is_signed = H5Tget_sign(type) != H5T_SGN_NONE;
    const size_t bytes = H5Tget_size(type);
    info->numeric = sound_number(type);
    snprintf(info->stored, sizeof info->stored, "%c%zu", is_signed ? 'i' : 'u', 8 * bytes);
    if (!is_signed && bytes <= 2)
        info->dtype = bytes == 1 ? MB_U8 : MB_U16;
    else if (bytes < 4 || (is_signed && bytes == 4))
        info->dtype = MB_I32;
    else
        info->dtype = MB_F64; /* u32 exactly; 64 bits exactly up to 2^53 */
}

mb_h5_info mb_h5_classify_type(hid_t type)
{
    mb_h5_info info = {.kind = MB_H5_DATASET};
    const size_t bytes = H5Tget_size(type);
    size_t part = 0;
    hid_t base;
    switch (H5Tget_class(type)) {
    case H5T_INTEGER: classify_integer(&info, type); break;
    case H5T_FLOAT:
        info.numeric = sound_number(type);
        info.dtype = bytes == 2 ? MB_F16 : bytes == 4 ? MB_F32 : MB_F64;
        snprintf(info.stored, sizeof info.stored, "f%zu", 8 * bytes);
        break;
    case H5T_ENUM:
        base = H5Tget_super(type);
        classify_integer(&info, base);
        snprintf(info.stored, sizeof info.stored, "enum");
        H5Tclose(base);
        break;
    case H5T_STRING:
        info.text = true;
        snprintf(info.stored, sizeof info.stored, "string");
        break;
    case H5T_COMPOUND:
        info.numeric = is_complex(type, &part);
        if (info.numeric) {
            info.dtype = part <= 4 ? MB_C64 : MB_C128;
            snprintf(info.stored, sizeof info.stored, "c%zu", 16 * part);
        } else {
            snprintf(info.stored, sizeof info.stored, "compound");
        }
        break;
    case H5T_VLEN: snprintf(info.stored, sizeof info.stored, "vlen"); break;
    case H5T_ARRAY: snprintf(info.stored, sizeof info.stored, "array"); break;
    case H5T_REFERENCE: snprintf(info.stored, sizeof info.stored, "reference"); break;
    case H5T_BITFIELD: snprintf(info.stored, sizeof info.stored, "bitfield"); break;
    default: snprintf(info.stored, sizeof info.stored, "opaque"); break;
    }
    return info;
}

/* ---- filters and description ---- */

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
    {32001, "blosc", "hdf5-filter-plugin-blosc-serial"},
    {32004, "lz4", "hdf5-filter-plugin"},
    {32008, "bitshuffle", "bitshuffle"},
    {32013, "zfp", "hdf5-filter-plugin-zfp-serial"},
    {32015, "zstd", NULL},
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

static void describe_filters(hid_t properties, mb_h5_info *info)
{
    const int count = H5Pget_nfilters(properties);
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        unsigned flags, values[8] = {0};
        size_t value_count = 8;
        char own[40] = "", text[64];
        const char *package;
        const H5Z_filter_t id = H5Pget_filter2(properties, (unsigned)i, &flags, &value_count,
                                               values, sizeof own, own, NULL);
        const char *name = mb_h5_filter_name(id, &package);
        if (id == H5Z_FILTER_DEFLATE)
            snprintf(text, sizeof text, "deflate(%u)", values[0]);
        else if (name != NULL)
            snprintf(text, sizeof text, "%s", name);
        else
            snprintf(text, sizeof text, "filter %d", (int)id);
        const int wrote = snprintf(info->filters + at, sizeof info->filters - at, "%s%s",
                                   i > 0 ? ", " : "", text);
        if (wrote > 0 && at + (size_t)wrote < sizeof info->filters)
            at += (size_t)wrote;
    }
    info->filtered = count > 0;
}

mb_status mb_h5_describe_dataset(mb_h5 *file, hid_t dataset, const char *path, mb_h5_info *info)
{
    mb_status status = MB_STATUS_OK;
    hsize_t dims[MB_H5_MAX_RANK] = {0};
    const hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    const hid_t properties = H5Dget_create_plist(dataset);
    if (type < 0 || space < 0 || properties < 0) {
        status = mb_h5_failure(file, path, "describe");
        goto done;
    }
    *info = mb_h5_classify_type(type);
    info->empty = H5Sget_simple_extent_type(space) == H5S_NULL;
    info->rank = info->empty ? 0 : H5Sget_simple_extent_dims(space, dims, NULL);
    if (info->rank < 0 || info->rank > MB_H5_MAX_RANK) {
        status = mb_h5_failure(file, path, "describe");
        goto done;
    }
    for (int axis = 0; axis < info->rank; axis++) {
        if (dims[axis] > (hsize_t)INT64_MAX / 2) {
            status = mb_fail(MB_STATUS_SHAPE, NULL,
                             "'%s' in '%s' has an impossible extent: the file is damaged", path,
                             file->path);
            goto done;
        }
        info->dims[axis] = (int64_t)dims[axis];
    }
    if (H5Pget_layout(properties) == H5D_CHUNKED) {
        info->chunked = true;
        if (H5Pget_chunk(properties, info->rank, dims) < 0) {
            status = mb_h5_failure(file, path, "describe");
            goto done;
        }
        for (int axis = 0; axis < info->rank; axis++)
            info->chunks[axis] = (int64_t)dims[axis];
        describe_filters(properties, info);
    }
    info->is_virtual = H5Pget_layout(properties) == H5D_VIRTUAL;
    info->stored_bytes = H5Dget_storage_size(dataset);
done:
    if (properties >= 0)
        H5Pclose(properties);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    return status;
}

/* ---- handles ---- */

static mb_status adopt(mb_h5 *file, hid_t id, const char *path, mb_h5_dataset **out)
{
    mb_h5_dataset *dataset = calloc(1, sizeof *dataset);
    if (dataset == NULL || (dataset->path = strdup(path)) == NULL) {
        free(dataset);
        H5Dclose(id);
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for a dataset handle");
    }
    dataset->id = id;
    dataset->file = file;
    dataset->made = -1;
    const mb_status status = mb_h5_describe_dataset(file, id, path, &dataset->info);
    if (status != MB_STATUS_OK) {
        dataset->file = NULL;
        mb_h5_dataset_destroy(dataset);
        return status;
    }
    dataset->next = file->datasets;
    if (dataset->next != NULL)
        dataset->next->previous = dataset;
    file->datasets = dataset;
    *out = dataset;
    return MB_STATUS_OK;
}

mb_status mb_h5_dataset_open(mb_h5 *file, const char *path, mb_h5_dataset **out)
{
    MB_H5_GUARD;
    mb_h5_info info;
    *out = NULL;
    MB_TRY(mb_h5_ready(file, false));
    MB_TRY(mb_h5_describe(file, path, &info));
    if (info.kind != MB_H5_DATASET)
        return mb_fail(MB_STATUS_ARGUMENT, "path", "'%s' in '%s' is a group, not a dataset", path,
                       file->path);
    /* The cache holds one chunk: enough for successive reads inside it, and no surprise in memory.
    ** */
    const hid_t access = mb_h5_link_access(file, H5P_DATASET_ACCESS);
    if (info.chunked && info.numeric) {
        uint64_t chunk = mb_dtype_bytes(info.dtype);
        for (int axis = 0; axis < info.rank; axis++)
            chunk = mb_bytes_mul(chunk, (uint64_t)info.chunks[axis]);
        if (chunk > ((size_t)1 << 20) && chunk <= CACHE_BYTES)
            H5Pset_chunk_cache(access, 521, (size_t)chunk, 1.0);
    }
    const hid_t id = H5Dopen2(file->id, path, access);
    H5Pclose(access);
    if (id < 0)
        return mb_h5_failure(file, path, "open dataset");
    return adopt(file, id, path, out);
}

void mb_h5_dataset_let_go(mb_h5_dataset *dataset)
{
    if (dataset->file != NULL || dataset->users > 0)
        return;
    mb_h5_raw_free(dataset->raw);
    dataset->raw = NULL;
    if (!dataset->destroyed)
        return;
    free(dataset->path);
    free(dataset);
}

void mb_h5_dataset_destroy(mb_h5_dataset *dataset)
{
    MB_H5_GUARD;
    if (dataset == NULL)
        return;
    if (dataset->file != NULL) {
        if (dataset->previous != NULL)
            dataset->previous->next = dataset->next;
        else
            dataset->file->datasets = dataset->next;
        if (dataset->next != NULL)
            dataset->next->previous = dataset->previous;
    }
    if (dataset->id >= 0) {
        mb_h5_quiet();
        H5Dclose(dataset->id);
    }
    dataset->id = -1;
    mb_h5_leave_file(dataset);
    dataset->destroyed = true;
    mb_h5_dataset_let_go(dataset);
}

void mb_h5_dataset_use(mb_h5_dataset *dataset, int change)
{
    MB_H5_GUARD;
    dataset->users += change;
    mb_h5_dataset_let_go(dataset);
}

const mb_h5_info *mb_h5_dataset_info(const mb_h5_dataset *dataset)
{
    return &dataset->info;
}

const char *mb_h5_dataset_path(const mb_h5_dataset *dataset)
{
    return dataset->path;
}

bool mb_h5_dataset_is_open(const mb_h5_dataset *dataset)
{
    return dataset->id >= 0;
}

/* ---- creation ---- */

/* Is there room for `bytes` more? Then take it, where the file system can. */
static mb_status reserve_space(mb_h5 *file, uint64_t bytes)
{
    struct statvfs disk;
    char need[32], have[32];
    hsize_t size = 0;
    if (file->fd < 0 || H5Fflush(file->id, H5F_SCOPE_LOCAL) < 0 ||
        H5Fget_filesize(file->id, &size) < 0)
        return MB_STATUS_OK;
    while (fallocate(file->fd, 0, 0, (off_t)size) != 0) {
        if (errno == EINTR)
            continue;
        if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG)
            return MB_STATUS_OK; /* not supported here: the free space was checked */
        const int cause = errno;
        const uint64_t left =
            fstatvfs(file->fd, &disk) == 0 ? (uint64_t)disk.f_bavail * disk.f_frsize : 0;
        return mb_fail_bytes(MB_STATUS_IO, bytes, left,
                             "no room for %s in '%s' (%s; %s left): write elsewhere",
                             mb_bytes_format(bytes, need, sizeof need), file->path, strerror(cause),
                             mb_bytes_format(left, have, sizeof have));
    }
    return MB_STATUS_OK;
}

static mb_status check_space(mb_h5 *file, uint64_t bytes)
{
    struct statvfs disk;
    char need[32], have[32];
    if (file->fd < 0 || fstatvfs(file->fd, &disk) != 0)
        return MB_STATUS_OK;
    const uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (bytes <= left)
        return MB_STATUS_OK;
    return mb_fail_bytes(
        MB_STATUS_IO, bytes, left,
        "no room for %s in '%s' (the disk has %s left): free some space or write elsewhere",
        mb_bytes_format(bytes, need, sizeof need), file->path,
        mb_bytes_format(left, have, sizeof have));
}

static mb_status remember(mb_h5_dataset *dataset)
{
    mb_h5 *file = dataset->file;
    h5_made *made;
    if (!file->created)
        return MB_STATUS_OK;
    made = calloc(1, sizeof *made);
    if (made == NULL || (made->path = strdup(dataset->path)) == NULL) {
        free(made);
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for a dataset handle");
    }
    made->info = dataset->info;
    made->number = file->made_count++;
    made->next = file->made;
    file->made = made;
    dataset->made = made->number;
    return MB_STATUS_OK;
}

/* A handle for a dataset just created, which the file will look for when it is verified. */
static mb_status adopt_made(mb_h5 *file, hid_t id, const char *path, mb_h5_dataset **out)
{
    MB_TRY(adopt(file, id, path, out));
    const mb_status status = remember(*out);
    if (status != MB_STATUS_OK) {
        mb_h5_dataset_destroy(*out);
        *out = NULL;
    }
    return status;
}

mb_status mb_h5_dataset_create(mb_h5 *file, const char *path, mb_dtype dtype, int rank,
                               const int64_t *dims, const mb_h5_layout *layout, mb_h5_dataset **out)
{
    MB_H5_GUARD;
    mb_status status = MB_STATUS_OK;
    uint64_t bytes = mb_dtype_bytes(dtype);
    hsize_t extent[MB_H5_MAX_RANK], chunks[MB_H5_MAX_RANK];
    hid_t type = -1, space = -1, properties = -1, parents = -1, id = -1;
    const bool compressed = layout != NULL && layout->deflate > 0;
    bool chunked = compressed || (layout != NULL && layout->chunks != NULL);

    *out = NULL;
    MB_TRY(mb_h5_ready(file, true));
    if (rank < 0 || rank > MB_H5_MAX_RANK)
        return mb_fail(MB_STATUS_SHAPE, "shape", "a dataset has at most %d axes", MB_H5_MAX_RANK);
    if (layout != NULL && (layout->deflate < 0 || layout->deflate > 9))
        return mb_fail(MB_STATUS_ARGUMENT, "deflate", "deflate is a level from 0 to 9, not %d",
                       layout->deflate);
    for (int axis = 0; axis < rank; axis++) {
        if (dims[axis] < 0)
            return mb_fail(MB_STATUS_SHAPE, "shape", "extent %d of '%s' is negative", axis + 1,
                           path);
        extent[axis] = (hsize_t)dims[axis];
        bytes = mb_bytes_mul(bytes, (uint64_t)dims[axis]);
        /* Default chunks: whole frames. */
        chunks[axis] = axis < rank - 2 ? 1 : (hsize_t)dims[axis];
        if (layout != NULL && layout->chunks != NULL) {
            if (layout->chunks[axis] < 1 || (layout->chunks[axis] > dims[axis] && dims[axis] > 0))
                return mb_fail(MB_STATUS_ARGUMENT, "chunks",
                               "chunk extent %lld of axis %d does not fit 1 ... %lld",
                               (long long)layout->chunks[axis], axis + 1, (long long)dims[axis]);
            chunks[axis] = (hsize_t)layout->chunks[axis];
        }
    }
    if (bytes > (uint64_t)INT64_MAX)
        return mb_fail(MB_STATUS_SHAPE, "shape", "'%s' would be larger than any file", path);
    if (rank == 0 || bytes == 0)
        chunked = false; /* nothing to cut */
    if (chunked) {
        uint64_t chunk = mb_dtype_bytes(dtype);
        for (int axis = 0; axis < rank; axis++)
            chunk = mb_bytes_mul(chunk, chunks[axis]);
        if (chunk > UINT32_MAX)
            return mb_fail(MB_STATUS_ARGUMENT, "chunks",
                           "a chunk of '%s' would be larger than 4 GiB: give chunks", path);
    }
    MB_TRY(mb_h5_need_new(file, path));
    if (!compressed) {
        status = mb_h5_latch(file, check_space(file, bytes));
        if (status != MB_STATUS_OK)
            return status;
    }

    type = mb_h5_type_of(dtype);
    space = rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, extent, NULL);
    properties = H5Pcreate(H5P_DATASET_CREATE);
    parents = mb_h5_parents();
    if (chunked) {
        H5Pset_chunk(properties, rank, chunks);
        if (compressed) {
            H5Pset_shuffle(properties);
            H5Pset_deflate(properties, (unsigned)layout->deflate);
        }
    }
    if (!compressed && bytes >= RESERVE_BYTES) {
        H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY);
        H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER);
    }
    id = H5Dcreate2(file->id, path, type, space, parents, properties, H5P_DEFAULT);
    H5Pclose(parents);
    H5Pclose(properties);
    H5Sclose(space);
    H5Tclose(type);
    if (id < 0)
        return mb_h5_latch(file, mb_h5_failure(file, path, "create dataset"));
    if (!compressed && bytes >= RESERVE_BYTES && (layout == NULL || !layout->sparse)) {
        status = mb_h5_latch(file, reserve_space(file, bytes));
        if (status != MB_STATUS_OK) {
            H5Dclose(id);
            return status;
        }
    }
    return adopt_made(file, id, path, out);
}

mb_status mb_h5_virtual_create(mb_h5 *file, const char *path, mb_dtype dtype, int rank,
                               const int64_t *dims, const mb_h5_source *sources, int64_t count,
                               mb_h5_dataset **out)
{
    MB_H5_GUARD;
    hsize_t extent[MB_H5_MAX_RANK], start[MB_H5_MAX_RANK] = {0};
    const double nothing = NAN;
    herr_t result = 0;
    *out = NULL;
    MB_TRY(mb_h5_ready(file, true));
    if (rank < 1 || rank > MB_H5_MAX_RANK)
        return mb_fail(MB_STATUS_SHAPE, "shape", "a virtual dataset has 1 to %d axes",
                       MB_H5_MAX_RANK);
    MB_TRY(mb_h5_need_new(file, path));
    uint64_t bytes = mb_dtype_bytes(dtype);
    for (int axis = 0; axis < rank; axis++) {
        extent[axis] = (hsize_t)dims[axis];
        bytes = mb_bytes_mul(bytes, (uint64_t)dims[axis]);
    }
    MB_TRY(mb_h5_latch(file, check_space(file, bytes)));
    const hid_t type = mb_h5_type_of(dtype), space = H5Screate_simple(rank, extent, NULL);
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE), parents = mb_h5_parents();
    for (int64_t i = 0; i < count && result >= 0; i++) {
        start[0] = (hsize_t)sources[i].first;
        extent[0] = (hsize_t)sources[i].count;
        const hid_t source = H5Screate_simple(rank, extent, NULL);
        result = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, extent, NULL);
        char *name = mb_h5_literal(sources[i].file), *inside = mb_h5_literal(sources[i].path);
        if (name == NULL || inside == NULL)
            result = -1;
        if (result >= 0)
            result = H5Pset_virtual(properties, space, name, inside, source);
        free(name);
        free(inside);
        H5Sclose(source);
    }
    if (mb_dtype_kind(dtype) == MB_CLASS_REAL) /* what is missing shall not look like data */
        H5Pset_fill_value(properties, H5T_NATIVE_DOUBLE, &nothing);
    H5Sselect_all(space);
    const hid_t id = result >= 0
                         ? H5Dcreate2(file->id, path, type, space, parents, properties, H5P_DEFAULT)
                         : -1;
    H5Pclose(parents);
    H5Pclose(properties);
    H5Sclose(space);
    H5Tclose(type);
    if (id < 0)
        return mb_h5_latch(file, mb_h5_failure(file, path, "create virtual dataset"));
    MB_TRY(adopt_made(file, id, path, out));
    return (*out)->made >= 0 ? mb_h5_remember_sources(file->made, sources, count) : MB_STATUS_OK;
}
