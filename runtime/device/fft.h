/*
** FFT plans: described by value, made by the device's backend, kept in a least-recently-used cache
** per device. Transforms are in single precision, batched over rows of `rank` trailing axes, and
** unnormalized in both directions (the inverse of the forward transform is N times the input). Work
** areas are never allocated here: they are scratch slots (ops/planner.h).
*/
#ifndef MB_FFT_FFT_H
#define MB_FFT_FFT_H

#include "core/shape.h"

typedef struct mb_device mb_device;

typedef enum mb_fft_kind {
    MB_FFT_C2C_FORWARD, /* exp(-2 pi i j k / n) */
    MB_FFT_C2C_INVERSE,
    MB_FFT_R2C, /* real in, n/2 + 1 complex out along the last axis */
    MB_FFT_C2R  /* may destroy its input, as every library's does */
} mb_fft_kind;

typedef struct mb_fft_desc {
    mb_fft_kind kind;
    bool in_place;
    int rank;        /* 1, 2 or 3 */
    int64_t dims[3]; /* logical (real-side) extents, last axis fastest */
    int64_t batch;
    /* Physical layout, in elements of the respective side (real or complex): the row pitch of the
    ** last axis, and the distance between transforms. The other axes are dense, given that
    ** pitch. */
    int64_t in_pitch, out_pitch;
    int64_t in_distance, out_distance;
} mb_fft_desc;

typedef struct mb_fft_plan {
    mb_fft_desc desc;
    void *handle;        /* the backend's */
    uint64_t work_bytes; /* the area an execution needs */
    /* bytes that the library took for the plan itself, as far as they can be measured */
    uint64_t library_bytes;
    /* how the work area was derived if it is neither the library's nor a recorded figure; else
    ** NULL */
    const char *derived;
    int users; /* how many calls hold it now */
    uint64_t last_use;
} mb_fft_plan;

/* Dense layout for the kind (R2C/C2R in place: rows of 2 * (n/2 + 1) reals). */
mb_fft_desc mb_fft_describe(mb_fft_kind kind, int rank, const int64_t *dims, int64_t batch,
                            bool in_place);

typedef struct mb_fft_cache mb_fft_cache;
mb_status mb_fft_cache_create(mb_device *device, mb_fft_cache **out);
void mb_fft_cache_destroy(mb_fft_cache *cache);
/* The most elements of an axis. Beyond it the host's library works for minutes to make a plan for a
** large prime, and cannot be interrupted. */
#define MB_FFT_LONGEST ((int64_t)1 << 28)
/* Finds or makes the plan and holds it. The caller releases it. */
mb_status mb_fft_acquire(mb_device *device, const mb_fft_desc *desc, mb_fft_plan **out);
void mb_fft_release(mb_device *device, mb_fft_plan *plan);
/* Destroys plans that no call holds, oldest first, until at most `keep` are left; returns how many
** were destroyed. */
int mb_fft_cache_drop(mb_device *device, int keep);
/* Sets the limit on the library's bytes for plans; UINT64_MAX means no limit. Idle plans are
** dropped, the least recently used first; plans in use stay, whatever their size. */
void mb_fft_cache_set_limit(mb_device *device, uint64_t bytes);
/* Copies the plans, the most recently used first, if `list` has room for all. Returns how many
** plans there are. */
int mb_fft_cache_plans(mb_device *device, mb_fft_plan *out, int room, uint64_t *limit);
uint64_t mb_fft_cache_library_bytes(mb_device *device);
/* How many times a plan with a derived work area was acquired, and how the latest one was
** derived. */
uint64_t mb_fft_cache_derived(const mb_device *device, const char **how);
/* Queues the transform on the device's compute stream. `work` is the scratch slot declared for the
** plan. */
mb_status mb_fft_exec(mb_device *device, const mb_fft_plan *plan, void *in, void *out, void *work);

/*
** The size policy, in one place (fft_size.c): even 2-3-5-7-smooth sizes >= n. By smoothness alone:
*/
int64_t mb_fft_good_size(int64_t n);

/* Which axis the size is for: real rows (the last axis), or an axis before it. */
typedef enum mb_fft_axis { MB_FFT_ROW, MB_FFT_COLUMN } mb_fft_axis;

typedef struct mb_fft_candidate {
    int64_t n;
    /* what the axis adds to the time of a point: picoseconds, or relative without a record */
    double ps;
    int work; /* 1 if it needs a work area as large as the data, else 0 */
} mb_fft_candidate;

#define MB_FFT_MAX_CANDIDATES 200

/* The size for a device. With recorded times and work areas (*measured), it is the one with the
** smallest product of time and memory; else it is chosen by smoothness. `list` has room for
** MB_FFT_MAX_CANDIDATES and receives the sizes that were compared, ascending. */
int64_t mb_fft_choose_size(const mb_device *device, int64_t n, mb_fft_axis axis,
                           mb_fft_candidate *list, int *count, bool *measured);

/* The same for all axes of a real transform together (one to three, rows last), because all axes
** share one work area. Extents that are `given` are kept, and so are axes of extent 1 before the
** rows. Returns whether recorded times decided. */
bool mb_fft_choose_grid(const mb_device *device, int rank, const int64_t *least, const bool *given,
                        int64_t *sizes);

#endif
