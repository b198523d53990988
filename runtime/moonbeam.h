/*
** The C API of Moonbeam: devices with exact memory accounts, arrays, and all operators by name.
** This header is all that a C or C++ program includes; the program is linked with libmoonbeam:
**
**     cc -std=c11 program.c $(pkg-config --cflags --libs moonbeam)
**
** docs/reference has the operators; scripts/examples/reconstruct.c is a complete program.
**
** Status and errors. Every function that can fail returns a moonbeam_status. What a function makes
** is set to NULL where it fails. moonbeam_last_error reads the failure of the last call that failed
** in the thread; it says nothing about calls that succeed.
**
** Units. Bytes are bytes; a size in memory is rounded up to 512. Angles are radians, positions are
** pixels, and a pixel center is at a whole number, counted from 0. Operators say the unit of each
** parameter (moonbeam_argument_at).
**
** Ownership. The caller owns what a function hands out by a pointer to a pointer: arrays
** (moonbeam_array_destroy) and dry devices (moonbeam_device_close_dry). Devices belong to the
** library, which closes them all in moonbeam_close. Texts belong to the library. Those of an error
** hold until the next failure of the thread, the others for the life of the process.
**
** Threads. A device and its arrays are used by one thread at a time. Threads with different devices
** need no lock. Work on a GPU is queued: moonbeam_array_download and moonbeam_device_sync wait.
*/
#ifndef MOONBEAM_H
#define MOONBEAM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; moonbeam_version is that of the library. */
#define MOONBEAM_VERSION "0.1.0"
const char *moonbeam_version(void);

#define MOONBEAM_MAX_RANK 6

/* ---- status and errors ---- */

typedef enum moonbeam_status {
    MOONBEAM_OK = 0,
    MOONBEAM_ARGUMENT,    /* a value outside its range, an unknown name, wrong use */
    MOONBEAM_SHAPE,       /* rank or extents do not fit */
    MOONBEAM_DTYPE,       /* the element type is not accepted */
    MOONBEAM_BUDGET,      /* the request does not fit the budget of the device */
    MOONBEAM_MEMORY,      /* the system refused memory that the budget allowed */
    MOONBEAM_DEVICE,      /* no such device, or the device has failed */
    MOONBEAM_IO,          /* a file could not be read or written */
    MOONBEAM_UNSUPPORTED, /* this device or build cannot do it */
    MOONBEAM_CANCELLED,   /* moonbeam_cancel */
    MOONBEAM_DRY_RUN,     /* data were asked of a dry device, which has none */
    MOONBEAM_INTERNAL
} moonbeam_status;

typedef struct moonbeam_error {
    moonbeam_status status;
    const char *op, *arg;  /* operator and argument, or "" */
    const char *text;      /* one line: what is wrong, with the value, and what to do */
    uint64_t need_bytes;   /* of budget and memory failures: what was asked for, else 0 */
    uint64_t limit_bytes;  /* and the limit that it exceeds */
    uint64_t enough_bytes; /* of budget failures: the least budget that would have worked, or 0 */
} moonbeam_error;

/* "ok", "argument", "shape" and so on. */
const char *moonbeam_status_name(moonbeam_status status);
/* The last failure of this thread; status MOONBEAM_OK and empty texts if nothing has failed. */
void moonbeam_last_error(moonbeam_error *out);
/* Stops operators that run: they fail with MOONBEAM_CANCELLED until the flag is lowered with 0.
** Any thread and a signal handler may call this function. */
void moonbeam_cancel(int cancelled);

/* ---- devices ---- */

typedef struct moonbeam_device moonbeam_device;

/* How many devices there are, and the id of each: number 0 is "host", then come "cuda:0" ... */
int moonbeam_device_count(void);
moonbeam_status moonbeam_device_id(int number, char *id, size_t id_bytes);
/* Opens "host", "cuda" (the first), "cuda:1" ... on first use; later calls find the same device.
** "host:1" to "host:7" are further devices of the host with memory of their own, for tests of
** programs that use several devices. */
moonbeam_status moonbeam_device_open(const char *id, moonbeam_device **out);

typedef struct moonbeam_memory {
    uint64_t budget;  /* the most bytes that may be live; at first 90 % of the free memory */
    uint64_t live;    /* in use now, in whole units of 512 bytes */
    uint64_t peak;    /* the most that was live since the device was opened */
    uint64_t largest; /* the largest request that would succeed now */
} moonbeam_memory;

moonbeam_status moonbeam_device_memory(moonbeam_device *device, moonbeam_memory *out);
/* Sets the budget, which may not be below the live bytes. */
moonbeam_status moonbeam_device_set_budget(moonbeam_device *device, uint64_t bytes);
/* Waits for all queued work. */
moonbeam_status moonbeam_device_sync(moonbeam_device *device);
/* Closes all devices. Arrays must have been destroyed, dry devices closed. Returns the number of
** blocks of memory that were still live: 0 in a correct program. */
uint64_t moonbeam_close(void);

/* ---- the memory of a stretch of the program ---- */

/* From begin to end, the most bytes that were live beyond those at the beginning, counting the
** arrays and the scratch of this thread. Stretches may nest. */
moonbeam_status moonbeam_peak_begin(moonbeam_device *device, int *token);
moonbeam_status moonbeam_peak_end(moonbeam_device *device, int token, uint64_t *bytes);

/* ---- dry runs ---- */

/* A dry device has the facts, the budget and the allocator of `device`, and no memory: its arrays
** have shapes but no data, and its operators are accounted for but not run. The same function, run
** with a dry device, has exactly the peak of the real run. Uploads do nothing; a download fails
** with MOONBEAM_DRY_RUN. `budget` in bytes; 0: that of the device. */
moonbeam_status moonbeam_device_open_dry(moonbeam_device *device, uint64_t budget,
                                         moonbeam_device **out);
void moonbeam_device_close_dry(moonbeam_device *dry); /* NULL is fine */
int moonbeam_device_is_dry(const moonbeam_device *device);

/* ---- arrays ---- */

/* Elements on one device in row-major order: the last axis is the fastest. */
typedef struct moonbeam_array moonbeam_array;

/* A new array, not initialized. `dtype`: "u8", "u16", "i32", "f16", "f32", "f64", "c64" or "c128".
** `rank` from 0 (a scalar) to MOONBEAM_MAX_RANK; `dims` has one extent per axis. */
moonbeam_status moonbeam_array_create(moonbeam_device *device, const char *dtype, int rank,
                                      const int64_t *dims, moonbeam_array **out);
void moonbeam_array_destroy(moonbeam_array *array); /* NULL is fine */

/* A view with the axes in another order, axes[i] being the axis of `array` that becomes axis i. It
** shares the memory of `array`; each is destroyed on its own, in any order. Operators take views
** where they say so; a view whose elements are not in row-major order cannot be downloaded. */
moonbeam_status moonbeam_array_permute(const moonbeam_array *array, const int *axes,
                                       moonbeam_array **out);

int moonbeam_array_rank(const moonbeam_array *array);
int64_t moonbeam_array_extent(const moonbeam_array *array, int axis); /* -1: no such axis */
const char *moonbeam_array_dtype(const moonbeam_array *array);
uint64_t moonbeam_array_bytes(const moonbeam_array *array); /* elements x element size */
moonbeam_device *moonbeam_array_device(const moonbeam_array *array);

/* Copies all elements from or to memory of the program; `bytes` must be moonbeam_array_bytes. The
** memory may be reused when the call returns. */
moonbeam_status moonbeam_array_upload(moonbeam_array *array, const void *data, uint64_t bytes);
moonbeam_status moonbeam_array_download(const moonbeam_array *array, void *data, uint64_t bytes);

/* ---- operators by name ---- */

typedef enum moonbeam_argument_kind {
    MOONBEAM_ARRAY_IN,    /* an array that is read */
    MOONBEAM_ARRAY_OUT,   /* a result */
    MOONBEAM_ARRAY_INOUT, /* an array that is changed */
    MOONBEAM_INT,
    MOONBEAM_FLOAT,
    MOONBEAM_BOOL,
    MOONBEAM_CHOICE, /* one of a list of names */
    MOONBEAM_VECTOR  /* a list of numbers */
} moonbeam_argument_kind;

typedef struct moonbeam_argument {
    const char *name, *unit, *doc; /* unit: "px", "rad" ..., or NULL */
    moonbeam_argument_kind kind;
    int required;
    double least, most;         /* of numbers, both included; no range unless least < most */
    double initial;             /* the default; NaN: chosen by the operator */
    const char *const *choices; /* of a choice: ends with NULL; `initial` is an index of it */
} moonbeam_argument;

int moonbeam_op_count(void);
const char *moonbeam_op_name(int number);          /* from 0; NULL: no such operator */
const char *moonbeam_op_summary(const char *name); /* one line; NULL: no such operator */
const char *moonbeam_op_doc(const char *name);     /* shapes, units and the behavior at edges */
/* Argument `number` (from 0) of an operator. Fails with MOONBEAM_ARGUMENT after the last one. */
moonbeam_status moonbeam_argument_at(const char *op, int number, moonbeam_argument *out);

/* One argument of a call, by name. A list of them ends with moonbeam_end(). */
typedef struct moonbeam_param {
    const char *name;
    int type;
    moonbeam_array *array;
    moonbeam_array **result;
    const char *text;
    double number;
    const double *values;
    int64_t count;
} moonbeam_param;

/* An input, an array to change, or the array that a result is written into. */
moonbeam_param moonbeam_array_param(const char *name, moonbeam_array *array);
/* A result that the call makes and hands out in *result. It is NULL where the parameters of the
** call give no such result. Results that nobody asks for are not kept. */
moonbeam_param moonbeam_result(const char *name, moonbeam_array **result);
/* An integer, a float, or 0 or 1 for a bool. */
moonbeam_param moonbeam_number(const char *name, double number);
moonbeam_param moonbeam_choice(const char *name, const char *text);
/* Numbers, which must stay in place during the call. */
moonbeam_param moonbeam_vector(const char *name, const double *values, int64_t count);
moonbeam_param moonbeam_end(void);

/* Runs an operator. It runs on the device of its arrays; `device` counts where it has no input
** array, and may be NULL otherwise. On failure no result is made. */
moonbeam_status moonbeam_run(moonbeam_device *device, const char *op, const moonbeam_param *params);

typedef struct moonbeam_estimate {
    uint64_t result_bytes;  /* of the results that the call would make */
    uint64_t scratch_bytes; /* what it needs beside them while it runs */
    uint64_t peak_bytes;    /* the sum: how far the live bytes of the device rise */
} moonbeam_estimate;

/* What moonbeam_run would take for the same arguments: the number that it allocates, not a guess.
** The shapes are those of the arrays, which may be on a dry device. */
moonbeam_status moonbeam_estimate_run(moonbeam_device *device, const char *op,
                                      const moonbeam_param *params, moonbeam_estimate *out);

#ifdef __cplusplus
}
#endif
#endif
