/*
** Small values in HDF5 files: attributes, and scalar, string or short datasets. What is read
** belongs to the file (file->value, file->names) until the next value call, so that nobody has to
** free it on an error path. Numbers are read as double; integers beyond 2^53 lose their last bits.
*/
#define _GNU_SOURCE
#include "files/h5/data/h5data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MAX_VALUE ((int64_t)1 << 20)
#define MAX_VALUE_BYTES ((uint64_t)16 << 20)
/* More than 64 KiB of descriptors refer to, and other threads need for a moment. */
#define ATTRIBUTE_ROOM ((rlim_t)128 << 20)

static void free_value(mb_h5_value *value)
{
    if (!value)
        return;
    for (int64_t i = 0; value->strings && i < value->count; i++)
        free(value->strings[i]);
    free(value->strings);
    free(value->numbers);
    free(value);
}

void mb_h5_free_value(mb_h5 *file)
{
    free_value(file->value);
    file->value = NULL;
    for (int64_t i = 0; i < file->name_count; i++)
        free(file->names[i]);
    free(file->names);
    file->names = NULL;
    file->name_count = 0;
}

/* ---- reading ---- */

/* Reads through `reader` whatever the object is. */
typedef struct source {
    mb_h5 *file;
    const char *name;
    hid_t id, type, space;
    bool attribute;
} source;

/* Strings of variable length: a small file can have many that share their characters. */
static void *take_string(size_t bytes, void *left)
{
    uint64_t *room = left;
    if (bytes > *room)
        return NULL;
    *room -= bytes;
    return malloc(bytes);
}

static void drop_string(void *memory, void *left)
{
    (void)left;
    free(memory);
}

/* Reads an attribute of strings of variable length. libhdf5 takes memory by the lengths that
** stand in the file, or, in a damaged one, beyond what it has read of it, which differ from
** process to process; no property limits it for attributes. So the data of the process may not
** grow by more than ATTRIBUTE_ROOM meanwhile. */
static herr_t read_limited(const source *from, hid_t type, void *buffer)
{
    struct rlimit before;
    unsigned long long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    const bool known = statm && getrlimit(RLIMIT_DATA, &before) == 0 &&
                       fscanf(statm, "%*u %*u %*u %*u %*u %llu", &pages) == 1;
    if (statm)
        fclose(statm);
    if (known) {
        struct rlimit now = before;
        const rlim_t most = pages * (rlim_t)sysconf(_SC_PAGESIZE) + ATTRIBUTE_ROOM;
        now.rlim_cur = most < before.rlim_cur ? most : before.rlim_cur;
        setrlimit(RLIMIT_DATA, &now);
    }
    const herr_t result = H5Aread(from->id, type, buffer);
    if (known)
        setrlimit(RLIMIT_DATA, &before);
    return result;
}

// Properties of a transfer of `count` values. HDF5 converts strings in buffers of 1 MiB, which it
// clears at every transfer, unless it is told how little there is.
static hid_t transfer_of(int64_t count, hid_t memory, hid_t stored)
{
    const hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
    const size_t most = (size_t)1 << 20, each = H5Tget_size(memory) + H5Tget_size(stored) + 16;
    if (count > 0 && (uint64_t)count < most / each)
        H5Pset_buffer(transfer, (size_t)count * each, NULL, NULL);
    return transfer;
}

static herr_t read_raw(const source *from, hid_t type, int64_t count, void *buffer)
{
    uint64_t room = MAX_VALUE_BYTES;
    if (from->attribute)
        return H5Tis_variable_str(type) > 0 ? read_limited(from, type, buffer)
                                            : H5Aread(from->id, type, buffer);
    H5_OWNED hid_t transfer = transfer_of(count, type, from->type);
    H5Pset_vlen_mem_manager(transfer, take_string, &room, drop_string, &room);
    return H5Dread(from->id, type, H5S_ALL, H5S_ALL, transfer, buffer);
}

static mb_status read_strings(const source *from, mb_h5_value *value)
{
    mb_status status = MB_STATUS_OK;
    const size_t count = (size_t)value->count;
    const bool variable = H5Tis_variable_str(from->type) > 0;
    const size_t bytes = variable ? sizeof(char *) : H5Tget_size(from->type) + 1;
    H5_OWNED hid_t type = H5Tcopy(H5T_C_S1);
    char *buffer = calloc(count + 1, bytes);
    value->strings = calloc(count + 1, sizeof *value->strings);
    H5Tset_size(type, variable ? H5T_VARIABLE : bytes);
    H5Tset_cset(type, H5Tget_cset(from->type));
    if (!buffer || !value->strings) {
        status = mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to read '%s'", from->name);
        goto done;
    }
    if (count > 0 && read_raw(from, type, value->count, buffer) < 0) {
        status = mb_h5_failure(from->file, from->name, "read");
        for (size_t i = 0; variable && i < count; i++)
            free(((char **)(void *)buffer)[i]);
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        const char *text = variable ? ((char **)(void *)buffer)[i] : buffer + i * bytes;
        value->strings[i] = strdup(text ? text : "");
        if (!value->strings[i]) {
            status =
                mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to read '%s'", from->name);
            break;
        }
        if (!variable && H5Tget_strpad(from->type) == H5T_STR_SPACEPAD)
            for (size_t n = strlen(value->strings[i]); n > 0 && value->strings[i][n - 1] == ' ';
                 n--)
                value->strings[i][n - 1] = '\0';
    }
    if (variable)
        H5Dvlen_reclaim(type, from->space, H5P_DEFAULT, buffer);
done:
    free(buffer);
    return status;
}

/* What the value takes in memory, as far as the file says so. */
static mb_status check_bytes(const source *from, int64_t count)
{
    const uint64_t bytes = mb_bytes_mul((uint64_t)count, H5Tget_size(from->type));
    const mb_h5 *file = from->file;
    const bool beyond = from->attribute && !file->writable && bytes > (uint64_t)file->bytes;
    if (!beyond && bytes <= MAX_VALUE_BYTES)
        return MB_STATUS_OK;
    return mb_fail(MB_STATUS_SHAPE, NULL, "'%s' in '%s' takes %llu bytes, %s", from->name,
                   file->path, (unsigned long long)bytes,
                   beyond ? "more than the file has: the file is damaged"
                          : "too many for a value: read it as a dataset (or the file is damaged)");
}

static mb_status read_value(const source *from, mb_h5_value *value)
{
    const mb_h5_info info = mb_h5_classify_type(from->type);
    hsize_t dims[MB_H5_MAX_RANK] = {0};
    value->text = info.text;
    value->integers = info.stored[0] == 'i' || info.stored[0] == 'u' || info.stored[0] == 'e';
    value->count = 1;
    if (H5Sget_simple_extent_type(from->space) == H5S_NULL) {
        value->rank = 1;
        value->count = 0;
    } else {
        value->rank = H5Sget_simple_extent_dims(from->space, dims, NULL);
        if (value->rank < 0)
            return mb_h5_failure(from->file, from->name, "read");
    }
    for (int axis = 0; axis < value->rank; axis++) {
        value->dims[axis] = (int64_t)dims[axis];
        if (value->count > 0 && dims[axis] > (hsize_t)(MAX_VALUE / value->count))
            return mb_fail(MB_STATUS_SHAPE, NULL,
                           "'%s' in '%s' is too large for a value: read it as a dataset",
                           from->name, from->file->path);
        value->count *= (int64_t)dims[axis];
    }
    if (info.text || info.numeric)
        MB_TRY(check_bytes(from, value->count));
    if (info.text)
        return read_strings(from, value);
    if (!info.numeric || mb_dtype_kind(info.dtype) == MB_CLASS_COMPLEX)
        return mb_fail(MB_STATUS_DTYPE, NULL,
                       "'%s' in '%s' holds %s, which is neither numbers nor strings", from->name,
                       from->file->path, info.stored);
    value->numbers = calloc((size_t)value->count + 1, sizeof *value->numbers);
    if (!value->numbers)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to read '%s'", from->name);
    if (value->count > 0 && read_raw(from, H5T_NATIVE_DOUBLE, value->count, value->numbers) < 0)
        return mb_h5_failure(from->file, from->name, "read");
    return MB_STATUS_OK;
}

static mb_status read_into_file(source *from, const mb_h5_value **out)
{
    mb_status status;
    mb_h5_value *value = calloc(1, sizeof *value);
    if (!value)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to read '%s'", from->name);
    status = read_value(from, value);
    if (status != MB_STATUS_OK) {
        free_value(value);
        return status;
    }
    from->file->value = value;
    *out = value;
    return MB_STATUS_OK;
}

static mb_status open_object(mb_h5 *file, const char *path, hid_t *object)
{
    MB_TRY(mb_h5_need(file, path));
    *object = H5Oopen(file->id, path, file->links);
    if (*object < 0)
        return mb_h5_failure(file, path, "open");
    return mb_h5_check_header(file, *object, path);
}

mb_status mb_h5_attribute_read(mb_h5 *file, const char *path, const char *name,
                               const mb_h5_value **value)
{
    MB_H5_GUARD;
    H5_OWNED hid_t object = -1;
    *value = NULL;
    MB_TRY(mb_h5_ready(file, false));
    mb_h5_free_value(file);
    MB_TRY(open_object(file, path, &object));
    if (H5Aexists(object, name) <= 0)
        return MB_STATUS_OK;
    H5_OWNED hid_t id = H5Aopen(object, name, H5P_DEFAULT);
    H5_OWNED hid_t type = id >= 0 ? H5Aget_type(id) : -1;
    H5_OWNED hid_t space = id >= 0 ? H5Aget_space(id) : -1;
    if (type < 0 || space < 0)
        return mb_h5_failure(file, name, "read attribute");
    return read_into_file(&(source){file, name, id, type, space, .attribute = true}, value);
}

static herr_t take_name(hid_t object, const char *name, const H5A_info_t *about, void *user)
{
    mb_h5 *file = user;
    (void)object, (void)about;
    char **names = realloc(file->names, (size_t)(file->name_count + 1) * sizeof *names);
    if (!names)
        return -1;
    file->names = names;
    names[file->name_count] = strdup(name);
    if (!names[file->name_count])
        return -1;
    file->name_count++;
    return 0;
}

mb_status mb_h5_attribute_names(mb_h5 *file, const char *path, char ***names, int64_t *count)
{
    MB_H5_GUARD;
    mb_status status = MB_STATUS_OK;
    H5_OWNED hid_t object = -1;
    MB_TRY(mb_h5_ready(file, false));
    mb_h5_free_value(file);
    MB_TRY(open_object(file, path, &object));
    if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, take_name, file) < 0)
        status = mb_h5_failure(file, path, "list the attributes");
    *names = file->names;
    *count = file->name_count;
    return status;
}

mb_status mb_h5_value_read(mb_h5 *file, const char *path, const mb_h5_value **value)
{
    MB_H5_GUARD;
    mb_h5_dataset *dataset = NULL;
    *value = NULL;
    MB_TRY(mb_h5_ready(file, false));
    mb_h5_free_value(file);
    MB_TRY(mb_h5_dataset_open(file, path, &dataset));
    H5_OWNED hid_t type = H5Dget_type(dataset->id), space = H5Dget_space(dataset->id);
    mb_status status = mb_h5_check_chunk(dataset);
    if (status == MB_STATUS_OK)
        status = mb_h5_check_written(dataset, NULL);
    if (status == MB_STATUS_OK)
        status = read_into_file(&(source){file, path, dataset->id, type, space, .attribute = false},
                                value);
    if (status == MB_STATUS_OK)
        status = mb_h5_check_whole(dataset, NULL);
    mb_h5_dataset_destroy(dataset);
    return status;
}

/* ---- writing ---- */

static hid_t space_of(const mb_h5_value *value)
{
    hsize_t dims[MB_H5_MAX_RANK];
    if (value->rank == 0)
        return H5Screate(H5S_SCALAR);
    for (int axis = 0; axis < value->rank; axis++)
        dims[axis] = (hsize_t)value->dims[axis];
    return H5Screate_simple(value->rank, dims, NULL);
}

static hid_t type_of(const mb_h5_value *value)
{
    if (!value->text)
        return H5Tcopy(value->integers ? H5T_NATIVE_INT64 : H5T_NATIVE_DOUBLE);
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
}

static herr_t write_raw(hid_t id, bool attribute, const mb_h5_value *value, hid_t stored)
{
    const void *data = value->text ? (const void *)value->strings : (const void *)value->numbers;
    const hid_t type = value->text ? stored : H5T_NATIVE_DOUBLE;
    if (value->count == 0)
        return 0;
    if (attribute)
        return H5Awrite(id, type, data);
    H5_OWNED hid_t transfer = transfer_of(value->count, type, stored);
    return H5Dwrite(id, type, H5S_ALL, H5S_ALL, transfer, data);
}

mb_status mb_h5_attribute_write(mb_h5 *file, const char *path, const char *name,
                                const mb_h5_value *value)
{
    MB_H5_GUARD;
    H5_OWNED hid_t object = -1;
    MB_TRY(mb_h5_ready(file, true));
    MB_TRY(open_object(file, path, &object));
    H5_OWNED hid_t type = type_of(value), space = space_of(value);
    if (H5Aexists(object, name) > 0)
        H5Adelete(object, name);
    H5_OWNED hid_t encoding = H5Pcreate(H5P_ATTRIBUTE_CREATE);
    H5Pset_char_encoding(encoding, H5T_CSET_UTF8);
    H5_OWNED hid_t id = H5Acreate2(object, name, type, space, encoding, H5P_DEFAULT);
    if (id >= 0 && write_raw(id, true, value, type) >= 0)
        return MB_STATUS_OK;
    return mb_h5_latch(file, mb_h5_failure(file, name, "write attribute"));
}

mb_status mb_h5_value_write(mb_h5 *file, const char *path, const mb_h5_value *value)
{
    MB_H5_GUARD;
    MB_TRY(mb_h5_ready(file, true));
    MB_TRY(mb_h5_need_new(file, path));
    H5_OWNED hid_t type = type_of(value), space = space_of(value), parents = mb_h5_parents();
    H5_OWNED hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(properties, false);
    H5_OWNED hid_t id = H5Dcreate2(file->id, path, type, space, parents, properties, H5P_DEFAULT);
    if (id >= 0 && write_raw(id, false, value, type) >= 0)
        return MB_STATUS_OK;
    return mb_h5_latch(file, mb_h5_failure(file, path, "write"));
}
