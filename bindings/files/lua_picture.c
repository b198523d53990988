/*
** Pictures: PNG files from arrays, and the percentiles for their gray window. A picture is made
** from a dense host copy of the array, in userdata of the running function, outside the pools.
** Statistics ignore NaN and infinities, which are shown as black pixels.
*/
#include "call/lua_args.h"
#include "call/lua_error.h"
#include "call/lua_type.h"
#include "core/kth_smallest.h"
#include "files/png_write.h"
#include "lua_modules.h"
#include "memory/lua_array_box.h"
#include <math.h>
#include <string.h>
#include <strings.h>

/* A dense host copy of the array's elements in row-major order; pushes the userdata that
** holds it. */
static const unsigned char *host_copy(lua_State *L, const mb_array *array)
{
    const size_t element = mb_dtype_bytes(array->dtype);
    const uint64_t count = mb_array_elements(array);
    const bool host = strcmp(array->device->backend->name, "host") == 0;
    if (array->device->dry)
        mbl_fail(L, MB_STATUS_DRY_RUN, NULL,
                 "a picture cannot be made in a dry run, where arrays have no data");
    mbl_check(L, mb_device_sync(array->device));
    if (host && mb_array_contiguous(array)) {
        lua_pushnil(L);
        return array->data;
    }
    unsigned char *copy = lua_newuserdatauv(L, (size_t)(count + 1) * element, 0);
    if (mb_array_contiguous(array)) {
        mbl_check(L, mb_array_download(array, copy, count * element));
        return copy;
    }
    if (!host)
        mbl_fail(L, MB_STATUS_SHAPE, NULL, "the array is a strided view on %s: use a:copy()",
                 array->device->id);
    mb_array_gather(array, 0, count, copy);
    return copy;
}

static mb_array *check_real(lua_State *L, int index)
{
    mb_array *array = mbl_check_array(L, index);
    if (mb_dtype_kind(array->dtype) == MB_CLASS_COMPLEX)
        mbl_fail(L, MB_STATUS_DTYPE, NULL,
                 "a complex array cannot be shown: take its magnitude first");
    return array;
}

/* ---- percentiles ---- */

/* Linear between the two nearest ranks, like NumPy's default. */
static double percentile(float *values, int64_t n, double percent)
{
    const double at = percent / 100 * (double)(n - 1);
    const int64_t below = (int64_t)floor(at);
    const double low = (double)mb_kth_smallest(values, n, below);
    if (below + 1 >= n || at == (double)below)
        return low;
    /* The next value is the smallest of the values after it. */
    float next = values[below + 1];
    for (int64_t i = below + 2; i < n; i++)
        if (values[i] < next)
            next = values[i];
    return low + (at - (double)below) * ((double)next - low);
}

/* percentiles(array, {p, ...}): a list of values in f32 precision, and how many elements were
** finite; nil and 0 if none were. */
static int picture_percentiles(lua_State *L)
{
    const mb_array *array = check_real(L, 1);
    const uint64_t count = mb_array_elements(array);
    const size_t element = mb_dtype_bytes(array->dtype);
    int64_t finite = 0;
    if (!lua_istable(L, 2))
        return mbl_fail(L, MB_STATUS_ARGUMENT, "percentiles",
                        "percentiles must be a list such as {0.5, 99.5}, not a %s",
                        mbl_type_name(L, 2));
    lua_settop(L, 2);
    const unsigned char *data = host_copy(L, array);
    float *values = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof *values, 0);
    for (uint64_t i = 0; i < count; i++) {
        const float value = (float)mb_element_get(array->dtype, data + i * element, NULL);
        if (isfinite(value))
            values[finite++] = value;
    }
    if (finite == 0) {
        lua_pushnil(L);
        lua_pushinteger(L, 0);
        return 2;
    }
    const int n = (int)mbl_length(L, 2);
    lua_createtable(L, n, 0);
    for (int i = 1; i <= n; i++) {
        lua_geti(L, 2, i);
        const double percent = mbl_check_number(L, -1, "percentiles");
        lua_pop(L, 1);
        if (!(percent >= 0 && percent <= 100))
            return mbl_fail(L, MB_STATUS_ARGUMENT, "percentiles",
                            "a percentile must be from 0 to 100, got %g", percent);
        lua_pushnumber(L, percentile(values, finite, percent));
        lua_rawseti(L, -2, i);
    }
    lua_pushinteger(L, finite);
    return 2;
}

/* ---- writing ---- */

typedef struct window {
    double low, high, gamma;
    int bits;
} window;

static void apply_window(const window *w, mb_dtype dtype, const unsigned char *from, uint64_t count,
                         void *to)
{
    const size_t element = mb_dtype_bytes(dtype);
    const double top = w->bits == 16 ? 65535 : 255;
    const double scale = w->high > w->low ? 1 / (w->high - w->low) : 0;
    for (uint64_t i = 0; i < count; i++) {
        const double value = mb_element_get(dtype, from + i * element, NULL);
        double gray = isnan(value) ? 0 : (value - w->low) * scale;
        gray = !(gray > 0) ? 0 : gray < 1 ? gray : 1; /* +inf * 0 is NaN: black */
        if (w->gamma != 1)
            gray = pow(gray, 1 / w->gamma);
        if (w->bits == 16)
            ((uint16_t *)to)[i] = (uint16_t)(gray * top + 0.5);
        else
            ((uint8_t *)to)[i] = (uint8_t)(gray * top + 0.5);
    }
}

static const char *check_png_name(lua_State *L, int index)
{
    const char *path = mbl_check_string(L, index, "path"), *dot = strrchr(path, '.');
    if (!dot || strcasecmp(dot, ".png") != 0)
        mbl_fail(L, MB_STATUS_ARGUMENT, "path", "'%s' must end in .png: pictures are PNG files",
                 path);
    return path;
}

/* write_png(path, array [, {bits = 8 | 16, low =, high =, gamma = 1, text =, overwrite = false}]):
** the array is (row, column), or (row, column, 3) for RGB. Without low and high, u8 and u16 are
** written unchanged. */
static int picture_write_png(lua_State *L)
{
    static const char *const names[] = {"bits", "low", "high", "gamma", "text", "overwrite", NULL};
    const char *path = check_png_name(L, 1);
    const mb_array *array = check_real(L, 2);
    const mb_shape *shape = &array->shape;
    mb_picture picture = {.channels = 1, .bits = array->dtype == MB_U16 ? 16 : 8};
    mbl_check_options(L, 3, names, "picture.write_png");
    lua_settop(L, 3);
    if (shape->rank == 3 && shape->dims[2] == 3) {
        picture.channels = 3;
        picture.bits = 8;
    } else if (shape->rank != 2) {
        char text[128];
        return mbl_fail(L, MB_STATUS_SHAPE, NULL,
                        "a picture is (row, column) or (row, column, 3); the array is %s",
                        mb_shape_format(shape, text, sizeof text));
    }
    picture.height = shape->dims[0];
    picture.width = shape->dims[1];
    picture.bits = (int)mbl_option_integer(L, 3, "bits", picture.bits);
    if (mbl_option(L, 3, "text"))
        picture.text = mbl_check_string(L, -1, "text");
    if (picture.bits != 8 && picture.bits != 16)
        return mbl_fail(L, MB_STATUS_ARGUMENT, "bits", "bits is 8 or 16, not %d", picture.bits);
    const bool windowed = mbl_option(L, 3, "low") || mbl_option(L, 3, "high");
    window w = {.bits = picture.bits, .gamma = mbl_option_number(L, 3, "gamma", 1)};
    w.low = mbl_option_number(L, 3, "low", NAN);
    w.high = mbl_option_number(L, 3, "high", NAN);
    if (!(w.gamma > 0))
        return mbl_fail(L, MB_STATUS_ARGUMENT, "gamma", "gamma must be above 0");
    if (windowed && !(isfinite(w.low) && isfinite(w.high) && w.high >= w.low))
        return mbl_fail(L, MB_STATUS_ARGUMENT, "low",
                        "low and high must be given together, and low must not exceed high");
    const bool direct =
        !windowed && w.gamma == 1 && array->dtype == (picture.bits == 16 ? MB_U16 : MB_U8);
    if (!direct && !windowed) {
        if (array->dtype != MB_U8 && array->dtype != MB_U16)
            return mbl_fail(L, MB_STATUS_ARGUMENT, "low",
                            "a picture of %s needs low and high (or use mb.view.save)",
                            mb_dtype_name(array->dtype));
        w.low = 0;
        w.high = array->dtype == MB_U16 ? 65535 : 255;
    }
    const bool overwrite = mbl_option_flag(L, 3, "overwrite");
    if (array->device->dry)
        return 0;
    picture.rows = host_copy(L, array);
    if (!direct) {
        const uint64_t count = mb_array_elements(array);
        void *pixels = lua_newuserdatauv(L, (size_t)(count + 1) * (picture.bits == 16 ? 2 : 1), 0);
        apply_window(&w, array->dtype, picture.rows, count, pixels);
        picture.rows = pixels;
    }
    mbl_check(L, mb_png_write(path, overwrite, &picture));
    return 0;
}

int mbl_open_picture(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"write_png", picture_write_png},
        {"percentiles", picture_percentiles},
        {NULL, NULL},
    };
    luaL_newlib(L, functions);
    return 1;
}
