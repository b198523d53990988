/*
** What objects of HDF5 files are: element types, filters, extents. What a file says of them is
** checked, because libhdf5 believes it.
*/
#include "files/h5/library/h5library.h"
#include "core/grow.h"

#include <stdio.h>
#include <string.h>

/* A chunk up to this size is not compared with the size of the dataset. */
#define SMALL_CHUNK_BYTES ((uint64_t)8 << 20)

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

bool mb_h5_same_type(const mb_h5_dataset *dataset, mb_dtype dtype)
{
    if (dataset->taken)
        return false;
    H5_OWNED hid_t stored = H5Dget_type(dataset->id), wanted = mb_h5_type_of(dtype);
    return H5Tequal(stored, wanted) > 0;
}

uint64_t mb_h5_product(const int64_t *extents, int count)
{
    uint64_t product = 1;
    for (int i = 0; i < count; i++)
        product = mb_bytes_mul(product, (uint64_t)extents[i]);
    return product;
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
    H5_OWNED hid_t real = H5Tget_member_type(type, 0), imaginary = H5Tget_member_type(type, 1);
    if (first && second && strcmp(first, "r") == 0 && strcmp(second, "i") == 0)
        result = H5Tget_class(real) == H5T_FLOAT && H5Tequal(real, imaginary) > 0 &&
                 sound_number(real) && H5Tget_size(type) == 2 * H5Tget_size(real);
    *bytes = H5Tget_size(real);
    H5free_memory(first);
    H5free_memory(second);
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
    H5_OWNED hid_t base = -1;
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

/* ---- filters ---- */

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
        else if (name)
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

/* ---- objects ---- */

mb_status mb_h5_describe_dataset(mb_h5 *file, hid_t dataset, const char *path, mb_h5_info *info)
{
    hsize_t dims[MB_H5_MAX_RANK] = {0};
    H5_OWNED hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    H5_OWNED hid_t properties = H5Dget_create_plist(dataset);
    if (type < 0 || space < 0 || properties < 0)
        return mb_h5_failure(file, path, "describe");
    *info = mb_h5_classify_type(type);
    info->empty = H5Sget_simple_extent_type(space) == H5S_NULL;
    info->rank = info->empty ? 0 : H5Sget_simple_extent_dims(space, dims, NULL);
    if (info->rank < 0 || info->rank > MB_H5_MAX_RANK)
        return mb_h5_failure(file, path, "describe");
    for (int axis = 0; axis < info->rank; axis++) {
        if (dims[axis] > (hsize_t)INT64_MAX / 2)
            return mb_fail(MB_STATUS_SHAPE, NULL,
                           "'%s' in '%s' has an invalid extent: the file is damaged", path,
                           file->path);
        info->dims[axis] = (int64_t)dims[axis];
    }
    if (H5Pget_layout(properties) == H5D_CHUNKED) {
        info->chunked = true;
        if (H5Pget_chunk(properties, info->rank, dims) < 0)
            return mb_h5_failure(file, path, "describe");
        for (int axis = 0; axis < info->rank; axis++)
            info->chunks[axis] = (int64_t)dims[axis];
        describe_filters(properties, info);
    }
    info->is_virtual = H5Pget_layout(properties) == H5D_VIRTUAL;
    info->stored_bytes = H5Dget_storage_size(dataset);
    return MB_STATUS_OK;
}

mb_status mb_h5_describe_object(mb_h5 *file, hid_t id, const char *path, mb_h5_info *info)
{
    memset(info, 0, sizeof *info);
    switch (H5Iget_type(id)) {
    case H5I_GROUP: info->kind = MB_H5_GROUP; return MB_STATUS_OK;
    case H5I_DATASET: return mb_h5_describe_dataset(file, id, path, info);
    default: info->kind = MB_H5_DATATYPE; return MB_STATUS_OK;
    }
}

bool mb_h5_enter(h5_visited *visited, hid_t group)
{
    H5O_info_t about;
    if (H5Oget_info2(group, &about, H5O_INFO_BASIC) < 0)
        return false;
    for (int64_t i = 0; i < visited->count; i++)
        if (visited->places[i].file == about.fileno && visited->places[i].address == about.addr)
            return false;
    struct h5_place *places =
        mb_grow(visited->places, visited->count, &visited->room, sizeof *places);
    if (!places)
        return false;
    visited->places = places;
    places[visited->count++] = (struct h5_place){about.fileno, about.addr};
    return true;
}

/* libhdf5 decodes a whole chunk for any part of it. Those of a sound file are not larger than all
** the data, unless they are small. */
mb_status mb_h5_check_chunk(const mb_h5_dataset *dataset)
{
    const mb_h5_info *info = &dataset->info;
    H5_OWNED hid_t type = H5Dget_type(dataset->id);
    H5_OWNED hid_t properties = H5Dget_create_plist(dataset->id);
    const uint64_t element = H5Tget_size(type);
    const h5_expected expected = mb_h5_expected_of(properties, element);
    mb_h5_expect(&expected); /* of virtual datasets: mb_h5_check_written */
    if (!info->chunked)
        return MB_STATUS_OK;
    const uint64_t chunk = mb_bytes_mul(element, mb_h5_product(info->chunks, info->rank));
    const uint64_t all = mb_bytes_mul(element, mb_h5_product(info->dims, info->rank));
    if (chunk <= SMALL_CHUNK_BYTES || chunk <= all)
        return MB_STATUS_OK;
    return mb_fail(
        MB_STATUS_IO, NULL,
        "a chunk of '%s' of '%s' takes %llu bytes, but all its data take %llu: the file is "
        "damaged, or must be written again in smaller chunks",
        dataset->path, dataset->file->path, (unsigned long long)chunk, (unsigned long long)all);
}
