/*
** Arrays: a storage with a shape, strides and an element type. Views share the storage. Strides are
** in elements and may be 0 (broadcast) or negative (reversed). An mb_array is immutable except for
** its data. It has no reference count: its owner destroys it, which releases its storage.
*/
#ifndef MB_ARRAY_ARRAY_H
#define MB_ARRAY_ARRAY_H

#include "device/device.h"
#include "array/storage.h"

typedef struct mb_array {
    mb_device *device;
    mb_storage *storage;
    mb_dtype dtype;
    mb_shape shape;
    int64_t strides[MB_MAX_RANK]; /* elements */
    int64_t offset;               /* elements of dtype from the start of the storage */
    void *data;                   /* storage data + offset; a device address */
} mb_array;

/* Makes a contiguous array, not initialized. `owner` as for mb_pool_alloc. */
mb_status mb_array_create(mb_device *device, mb_dtype dtype, const mb_shape *shape,
                          const char *owner, mb_array **out);
/* Makes one in host memory that is pinned for a device (mb_storage_create_pinned), filled with
** zeros; `device` is the host. Without `pinned_for` it is mb_array_create. */
mb_status mb_array_create_pinned(mb_device *device, mb_device *pinned_for, mb_dtype dtype,
                                 const mb_shape *shape, const char *owner, mb_array **out);
void mb_array_destroy(mb_array *array); /* NULL is fine */

typedef struct mb_range {
    int64_t first, count, step; /* 0-based first; step may be negative; count >= 0 */
    bool drop;                  /* an integer index: the view drops the axis (count is 1) */
} mb_range;

/* Views. `ranges` has one entry per axis. */
mb_status mb_array_view(const mb_array *array, const mb_range *ranges, mb_array **out);
mb_status mb_array_permute(const mb_array *array, const int *axes, mb_array **out);
/* The same elements in row-major order. Fails when the layout does not allow this without a copy.
** One extent may be -1. */
mb_status mb_array_reshape(const mb_array *array, const mb_shape *shape, mb_array **out);
/* Broadcasts to a larger shape: adds leading axes and repeats axes of extent 1. */
mb_status mb_array_broadcast(const mb_array *array, const mb_shape *shape, mb_array **out);
/* The same bytes as another element type, along a dense last axis, like numpy's view(dtype). Rows,
** their pitch and the offset must be whole numbers of the new elements. */
mb_status mb_array_reinterpret(const mb_array *array, mb_dtype dtype, mb_array **out);

bool mb_array_contiguous(const mb_array *array);
/* True when the last axis is dense and the others have positive strides that do not overlap
** ("rows"). */
bool mb_array_rows(const mb_array *array);
/* The distance, in elements, from the first element to the start of row `index`. Rows are counted
** over all axes but the last. */
int64_t mb_array_row_offset(const mb_array *array, int64_t index);
uint64_t mb_array_elements(const mb_array *array);
uint64_t mb_array_bytes(const mb_array *array); /* elements x element size */
/* Has the array bytes to move: at least one element, and a device that is not dry? */
bool mb_array_has_data(const mb_array *array);
mb_spec mb_array_spec(const mb_array *array);
/* Do the address ranges of the two arrays overlap? (True does not prove a common byte.) Boxes of
** one array that have no element in common do not. */
bool mb_array_overlap(const mb_array *a, const mb_array *b);
/* Do they have the same storage, offset, shape, strides and element size? */
bool mb_array_same(const mb_array *a, const mb_array *b);

/* Copy host bytes in row-major order to or from a contiguous array. Upload returns when the bytes
** may be reused, download when they have arrived. */
mb_status mb_array_upload(mb_array *array, const void *host, uint64_t bytes);
mb_status mb_array_download(const mb_array *array, void *host, uint64_t bytes);
/* Copies elements [first, first + count) of an array in host memory, in row-major order, to dense
** memory. */
void mb_array_gather(const mb_array *array, uint64_t first, uint64_t count, void *host);
/* Reads one element; waits for it. `index` has one entry per axis, 0-based. */
mb_status mb_array_item(const mb_array *array, const int64_t *index, double *real, double *imag);

#endif
