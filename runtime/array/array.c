/*
** Arrays and their views. All checks of layout are here. The only data movement here is the
** transfer of contiguous host data; everything else is an operator (convert copies strided data).
*/
#include "array/array.h"
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(mb_array) <= MB_STORAGE_ROOM, "an array's record fits behind its storage's");

static void locate(mb_array *array)
{
    char *base = mb_storage_data(array->storage);
    array->data = base ? base + array->offset * (int64_t)mb_dtype_bytes(array->dtype) : NULL;
}

mb_status mb_array_create(mb_device *device, mb_dtype dtype, const mb_shape *shape,
                          const char *owner, mb_array **out)
{
    return mb_array_create_pinned(device, NULL, dtype, shape, owner, out);
}

mb_status mb_array_create_pinned(mb_device *device, mb_device *pinned_for, mb_dtype dtype,
                                 const mb_shape *shape, const char *owner, mb_array **out)
{
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 0)
            return mb_fail(MB_STATUS_SHAPE, NULL, "extent %d is %lld; extents are 0 or more", i + 1,
                           (long long)shape->dims[i]);
    uint64_t bytes = 0;
    MB_TRY(mb_shape_bytes(shape, dtype, &bytes));
    mb_storage *storage;
    MB_TRY(pinned_for ? mb_storage_create_pinned(device, pinned_for, bytes, owner, &storage)
                      : mb_storage_create(device, bytes, owner, &storage));
    mb_array *array = mb_storage_room(storage); /* set one by one, as in new_storage */
    array->device = device;
    array->storage = storage;
    array->dtype = dtype;
    array->shape = *shape;
    memset(array->strides, 0, sizeof array->strides);
    mb_shape_strides(shape, array->strides);
    array->offset = 0;
    array->data = mb_storage_data(storage);
    *out = array;
    return MB_STATUS_OK;
}

void mb_array_destroy(mb_array *array)
{
    if (!array)
        return;
    const bool own = array == mb_storage_room(array->storage); /* its memory is the storage's */
    mb_storage_release(array->storage);
    if (!own)
        free(array);
}

/* Makes a view as `view` describes it: an array's record, changed, whose storage it shares. */
static mb_status make_view(const mb_array *view, mb_array **out)
{
    mb_array *made = malloc(sizeof *made);
    if (!made)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for an array's record");
    *made = *view;
    mb_storage_retain(made->storage);
    *out = made;
    return MB_STATUS_OK;
}

mb_status mb_array_view(const mb_array *array, const mb_range *ranges, mb_array **out)
{
    int rank = 0;
    mb_shape shape = {0};
    int64_t strides[MB_MAX_RANK] = {0}, offset = array->offset;
    for (int i = 0; i < array->shape.rank; i++) {
        const mb_range *r = &ranges[i];
        int64_t extent = array->shape.dims[i], last = r->first + (r->count - 1) * r->step;
        if (r->count < 0 ||
            (r->count > 0 && (r->first < 0 || r->first >= extent || last < 0 || last >= extent)))
            return mb_fail(
                MB_STATUS_ARGUMENT, "ranges",
                "the range of axis %d goes from element %lld to %lld, but the axis has %lld", i + 1,
                (long long)r->first + 1, (long long)last + 1, (long long)extent);
        if (r->count > 0)
            offset += r->first * array->strides[i];
        if (r->drop)
            continue;
        shape.dims[rank] = r->count;
        strides[rank++] = array->strides[i] * r->step;
    }
    shape.rank = rank;
    mb_array view = *array;
    view.shape = shape;
    memcpy(view.strides, strides, sizeof strides);
    view.offset = offset;
    locate(&view);
    return make_view(&view, out);
}

mb_status mb_array_permute(const mb_array *array, const int *axes, mb_array **out)
{
    unsigned seen = 0;
    for (int i = 0; i < array->shape.rank; i++) {
        if (axes[i] < 0 || axes[i] >= array->shape.rank || seen >> axes[i] & 1u)
            return mb_fail(MB_STATUS_ARGUMENT, "axes", "each of the %d axes must be named once",
                           array->shape.rank);
        seen |= 1u << axes[i];
    }
    mb_array view = *array;
    for (int i = 0; i < array->shape.rank; i++) {
        view.shape.dims[i] = array->shape.dims[axes[i]];
        view.strides[i] = array->strides[axes[i]];
    }
    return make_view(&view, out);
}

/*
** Reshape without a copy: walks both shapes from the front and matches groups of axes with equal
** products. Within a group, the old axes must be dense with respect to each other.
*/
static bool restride(const mb_array *array, const mb_shape *shape, int64_t *strides)
{
    mb_shape old = {0};
    int64_t old_strides[MB_MAX_RANK];
    for (int i = 0; i < array->shape.rank; i++) /* axes of one element do not matter */
        if (array->shape.dims[i] != 1) {
            old.dims[old.rank] = array->shape.dims[i];
            old_strides[old.rank++] = array->strides[i];
        }
    int o = 0, n = 0;
    while (o < old.rank && n < shape->rank) {
        int o_end = o + 1, n_end = n + 1;
        int64_t old_count = old.dims[o], new_count = shape->dims[n];
        while (old_count != new_count) {
            if (new_count < old_count) {
                if (n_end == shape->rank)
                    return false;
                new_count *= shape->dims[n_end++];
            } else {
                if (o_end == old.rank)
                    return false;
                old_count *= old.dims[o_end++];
            }
        }
        for (int i = o; i < o_end - 1; i++)
            if (old_strides[i] != old.dims[i + 1] * old_strides[i + 1])
                return false;
        strides[n_end - 1] = old_strides[o_end - 1];
        for (int i = n_end - 1; i > n; i--)
            strides[i - 1] = strides[i] * shape->dims[i];
        o = o_end;
        n = n_end;
    }
    for (; n < shape->rank; n++) /* only axes of one element are left */
        strides[n] = 1;
    return true;
}

mb_status mb_array_reshape(const mb_array *array, const mb_shape *wanted, mb_array **out)
{
    mb_shape shape = *wanted;
    uint64_t elements = mb_shape_elements(&array->shape), known = 1;
    int open = -1;
    char from[128], to[128];
    for (int i = 0; i < shape.rank; i++) {
        if (shape.dims[i] == -1 && open < 0) {
            open = i;
        } else if (shape.dims[i] < 0) {
            return mb_fail(MB_STATUS_ARGUMENT, "shape",
                           "extent %d is %lld; one extent may be -1, the others are 0 or more",
                           i + 1, (long long)shape.dims[i]);
        } else {
            known = mb_bytes_mul(known, (uint64_t)shape.dims[i]);
        }
    }
    if (open >= 0)
        shape.dims[open] = known ? (int64_t)(elements / known) : 0;
    if (mb_shape_elements(&shape) != elements)
        return mb_fail(MB_STATUS_SHAPE, "shape", "%s has %llu elements and cannot become %s",
                       mb_shape_format(&array->shape, from, sizeof from),
                       (unsigned long long)elements, mb_shape_format(wanted, to, sizeof to));
    int64_t strides[MB_MAX_RANK] = {0};
    if (elements == 0)
        mb_shape_strides(&shape, strides);
    else if (!restride(array, &shape, strides))
        return mb_fail(MB_STATUS_SHAPE, NULL,
                       "this view of %s cannot become %s without a copy; call a:copy() first",
                       mb_shape_format(&array->shape, from, sizeof from),
                       mb_shape_format(&shape, to, sizeof to));
    mb_array view = *array;
    view.shape = shape;
    memcpy(view.strides, strides, sizeof strides);
    return make_view(&view, out);
}

mb_status mb_array_broadcast(const mb_array *array, const mb_shape *shape, mb_array **out)
{
    char from[128], to[128];
    int lead = shape->rank - array->shape.rank;
    int64_t strides[MB_MAX_RANK] = {0};
    bool fits = lead >= 0;
    for (int i = 0; fits && i < shape->rank; i++) {
        int64_t own = i < lead ? 1 : array->shape.dims[i - lead];
        if (own != shape->dims[i] && own != 1)
            fits = false;
        strides[i] = own == 1 ? 0 : array->strides[i - lead];
    }
    if (!fits)
        return mb_fail(MB_STATUS_SHAPE, "shape", "%s does not broadcast to %s",
                       mb_shape_format(&array->shape, from, sizeof from),
                       mb_shape_format(shape, to, sizeof to));
    mb_array view = *array;
    view.shape = *shape;
    memcpy(view.strides, strides, sizeof strides);
    return make_view(&view, out);
}

mb_status mb_array_reinterpret(const mb_array *array, mb_dtype dtype, mb_array **out)
{
    int last = array->shape.rank - 1;
    int64_t from = (int64_t)mb_dtype_bytes(array->dtype), to = (int64_t)mb_dtype_bytes(dtype);
    if (last < 0 || (array->strides[last] != 1 && array->shape.dims[last] > 1))
        return mb_fail(
            MB_STATUS_SHAPE, NULL,
            "the last axis must be dense to be viewed as another type; call a:copy() first");
    mb_array view = *array;
    bool whole = array->shape.dims[last] * from % to == 0 && array->offset * from % to == 0;
    for (int i = 0; i < last; i++) {
        whole = whole && (array->strides[i] * from % to == 0 || array->shape.dims[i] <= 1);
        view.strides[i] = array->strides[i] * from / to;
    }
    if (!whole)
        return mb_fail(
            MB_STATUS_SHAPE, NULL,
            "rows of %lld %s at this offset and pitch are not a whole number of %s (%lld "
            "bytes each)",
            (long long)array->shape.dims[last], mb_dtype_name(array->dtype), mb_dtype_name(dtype),
            (long long)to);
    view.dtype = dtype;
    view.strides[last] = 1;
    view.shape.dims[last] = array->shape.dims[last] * from / to;
    view.offset = array->offset * from / to;
    return make_view(&view, out);
}

bool mb_array_contiguous(const mb_array *array)
{
    int64_t stride = 1;
    for (int i = array->shape.rank - 1; i >= 0; i--) {
        if (array->shape.dims[i] == 0)
            return true;
        if (array->shape.dims[i] != 1 && array->strides[i] != stride)
            return false;
        stride *= array->shape.dims[i];
    }
    return true;
}

bool mb_array_rows(const mb_array *array)
{
    int last = array->shape.rank - 1;
    if (last < 0 || mb_array_elements(array) == 0)
        return true;
    if (array->shape.dims[last] != 1 && array->strides[last] != 1)
        return false;
    for (int i = 0; i < last; i++)
        if (array->shape.dims[i] != 1 && array->strides[i] < array->shape.dims[last])
            return false;
    return true;
}

int64_t mb_array_row_offset(const mb_array *array, int64_t index)
{
    int64_t offset = 0;
    for (int i = array->shape.rank - 2; i >= 0; i--) {
        offset += index % array->shape.dims[i] * array->strides[i];
        index /= array->shape.dims[i];
    }
    return offset;
}

uint64_t mb_array_elements(const mb_array *array)
{
    return mb_shape_elements(&array->shape);
}

uint64_t mb_array_bytes(const mb_array *array)
{
    return mb_array_elements(array) * mb_dtype_bytes(array->dtype);
}

bool mb_array_has_data(const mb_array *array)
{
    return !array->device->dry && mb_array_elements(array) > 0;
}

mb_spec mb_array_spec(const mb_array *array)
{
    return (mb_spec){.present = true, .dtype = array->dtype, .shape = array->shape};
}

/* Byte range [begin, end) that the array touches. */
static void extent(const mb_array *array, const char **begin, const char **end)
{
    int64_t low = 0, high = 0, size = (int64_t)mb_dtype_bytes(array->dtype);
    for (int i = 0; i < array->shape.rank; i++) {
        int64_t span = (array->shape.dims[i] - 1) * array->strides[i];
        if (span < 0)
            low += span;
        else
            high += span;
    }
    *begin = (const char *)array->data + low * size;
    *end = (const char *)array->data + (high + 1) * size;
}

/* Whether two arrays are boxes of one grid, by their strides, that have no element in common.
** `first` does not begin after `second`, which begins `digit` elements of the grid further along
** each axis. */
static bool boxes_apart(const mb_array *first, const mb_array *second)
{
    const int64_t size = (int64_t)mb_dtype_bytes(first->dtype);
    int64_t distance = (const char *)second->data - (const char *)first->data;
    bool apart = false;
    if (first->shape.rank != second->shape.rank || first->dtype != second->dtype || distance % size)
        return false;
    distance /= size;
    for (int i = 0; i < first->shape.rank; i++) {
        const int64_t stride = first->strides[i], extent = first->shape.dims[i];
        if (stride <= 0 || stride != second->strides[i])
            return false;
        const int64_t digit = distance / stride, end = digit + second->shape.dims[i];
        const int64_t room = i > 0 ? first->strides[i - 1] / stride : INT64_MAX;
        if (end > room || extent > room)
            return false;
        apart = apart || digit >= extent;
        distance %= stride;
    }
    return apart && distance == 0;
}

bool mb_array_overlap(const mb_array *a, const mb_array *b)
{
    if (a->storage != b->storage || !mb_array_elements(a) || !mb_array_elements(b))
        return false;
    const char *a_begin, *a_end, *b_begin, *b_end;
    extent(a, &a_begin, &a_end);
    extent(b, &b_begin, &b_end);
    if (a_begin >= b_end || b_begin >= a_end)
        return false;
    return a->data <= b->data ? !boxes_apart(a, b) : !boxes_apart(b, a);
}

bool mb_array_same(const mb_array *a, const mb_array *b)
{
    if (a->storage != b->storage || a->data != b->data || !mb_shape_equal(&a->shape, &b->shape) ||
        mb_dtype_bytes(a->dtype) != mb_dtype_bytes(b->dtype))
        return false;
    for (int i = 0; i < a->shape.rank; i++)
        if (a->shape.dims[i] != 1 && a->strides[i] != b->strides[i])
            return false;
    return true;
}

static mb_status transfer_check(const mb_array *array, uint64_t bytes)
{
    if (!mb_array_contiguous(array))
        return mb_fail(MB_STATUS_SHAPE, NULL,
                       "host copies need a contiguous array; call a:copy() first");
    if (bytes != mb_array_bytes(array))
        return mb_fail(MB_STATUS_SHAPE, NULL, "got %llu host bytes for an array of %llu bytes",
                       (unsigned long long)bytes, (unsigned long long)mb_array_bytes(array));
    return MB_STATUS_OK;
}

mb_status mb_array_upload(mb_array *array, const void *host, uint64_t bytes)
{
    MB_TRY(transfer_check(array, bytes));
    return bytes ? mb_device_upload(array->device, array->data, host, bytes) : MB_STATUS_OK;
}

mb_status mb_array_download(const mb_array *array, void *host, uint64_t bytes)
{
    MB_TRY(transfer_check(array, bytes));
    return bytes ? mb_device_download(array->device, host, array->data, bytes) : MB_STATUS_OK;
}

void mb_array_gather(const mb_array *array, uint64_t first, uint64_t count, void *host)
{
    const size_t bytes = mb_dtype_bytes(array->dtype);
    const int rank = array->shape.rank;
    int64_t index[MB_MAX_RANK] = {0};
    uint64_t rest = first;
    unsigned char *to = host;
    for (int axis = rank - 1; axis >= 0; axis--) {
        index[axis] = (int64_t)(rest % (uint64_t)array->shape.dims[axis]);
        rest /= (uint64_t)array->shape.dims[axis];
    }
    for (uint64_t done = 0; done < count; done++, to += bytes) {
        int64_t offset = 0;
        for (int axis = 0; axis < rank; axis++)
            offset += index[axis] * array->strides[axis];
        memcpy(to, (const unsigned char *)array->data + offset * (int64_t)bytes, bytes);
        for (int axis = rank - 1; axis >= 0 && ++index[axis] == array->shape.dims[axis]; axis--)
            index[axis] = 0;
    }
}

mb_status mb_array_item(const mb_array *array, const int64_t *index, double *real, double *imag)
{
    size_t size = mb_dtype_bytes(array->dtype);
    int64_t at = 0;
    for (int i = 0; i < array->shape.rank; i++) {
        if (index[i] < 0 || index[i] >= array->shape.dims[i])
            return mb_fail(MB_STATUS_ARGUMENT, "index",
                           "index %d is %lld; the axis has %lld elements", i + 1,
                           (long long)index[i] + 1, (long long)array->shape.dims[i]);
        at += index[i] * array->strides[i];
    }
    double element[2];
    MB_TRY(mb_device_download(array->device, element,
                              (const char *)array->data + at * (int64_t)size, size));
    *real = mb_element_get(array->dtype, element, imag);
    return MB_STATUS_OK;
}
