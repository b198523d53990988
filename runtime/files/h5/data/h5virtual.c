/*
** New virtual datasets.
*/
#include "files/h5/data/h5data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* HDF5 takes names of sources as formats: the name with every '%' doubled; to be freed. */
static char *literal(const char *name)
{
    char *doubled = malloc(2 * strlen(name) + 1), *to = doubled;
    if (!doubled) {
        mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for a name");
        return NULL;
    }
    for (const char *c = name; *c != '\0'; c++) {
        if (*c == '%')
            *to++ = '%';
        *to++ = *c;
    }
    *to = '\0';
    return doubled;
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
    const uint64_t bytes = mb_bytes_mul(mb_dtype_bytes(dtype), mb_h5_product(dims, rank));
    for (int axis = 0; axis < rank; axis++)
        extent[axis] = (hsize_t)dims[axis];
    MB_TRY(mb_h5_latch(file, mb_h5_check_space(file, bytes)));
    H5_OWNED hid_t type = mb_h5_type_of(dtype), space = H5Screate_simple(rank, extent, NULL);
    H5_OWNED hid_t properties = H5Pcreate(H5P_DATASET_CREATE), parents = mb_h5_parents();
    for (int64_t i = 0; i < count && result >= 0; i++) {
        start[0] = (hsize_t)sources[i].first;
        extent[0] = (hsize_t)sources[i].count;
        H5_OWNED hid_t source = H5Screate_simple(rank, extent, NULL);
        result = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, extent, NULL);
        char *name = literal(sources[i].file), *inside = literal(sources[i].path);
        if (!name || !inside)
            result = -1;
        if (result >= 0)
            result = H5Pset_virtual(properties, space, name, inside, source);
        free(name);
        free(inside);
    }
    if (mb_dtype_kind(dtype) == MB_CLASS_REAL) /* what is missing shall not look like data */
        H5Pset_fill_value(properties, H5T_NATIVE_DOUBLE, &nothing);
    H5Sselect_all(space);
    H5Pset_obj_track_times(properties, false);
    const hid_t id = result >= 0
                         ? H5Dcreate2(file->id, path, type, space, parents, properties, H5P_DEFAULT)
                         : -1;
    if (id < 0)
        return mb_h5_latch(file, mb_h5_failure(file, path, "create virtual dataset"));
    MB_TRY(mb_h5_adopt_made(file, id, path, out));
    return (*out)->made >= 0 ? mb_h5_remember_sources(file->made, sources, count) : MB_STATUS_OK;
}
