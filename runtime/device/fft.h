/*
** FFT plans: described by value, made by the device's backend, kept in a least-recently-used cache
** per device. Transforms are batched over rows of `rank` trailing axes, unnormalised in both
** directions (inverse of forward = N times the input), single precision. Work areas are never
** allocated here: they are scratch slots (memory/planner.h).
*/
#ifndef MB_FFT_FFT_H
#define MB_FFT_FFT_H

#include "core/shape.h"

#ifdef __cplusplus
extern "C" {
#endif

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
    /* Physical layout in elements of the respective side (reals count as reals, complex as
    ** complex): row pitch of the last axis, and distance between transforms. The axes before the
    ** last are dense on top of the pitch. */
    int64_t in_pitch, out_pitch;
    int64_t in_distance, out_distance;
} mb_fft_desc;

typedef struct mb_fft_plan {
    mb_fft_desc desc;
    void *handle;        /* the backend's */
    uint64_t work_bytes; /* the area an execution needs */
    /* what the library took for the plan itself, as far as it can be measured */
    uint64_t library_bytes;
    /* how the work area was derived where it is not the library's or recorded figure; else NULL */
    const char *derived;
    int users; /* calls that hold it now */
    uint64_t last_use;
} mb_fft_plan;

/* Dense layout for the kind (R2C/C2R in place: rows of 2 * (n/2 + 1) reals). */
mb_fft_desc mb_fft_describe(mb_fft_kind kind, int rank, const int64_t *dims, int64_t batch,
                            bool in_place);

typedef struct mb_fft_cache mb_fft_cache;
mb_status mb_fft_cache_create(mb_device *device, mb_fft_cache **out);
void mb_fft_cache_destroy(mb_fft_cache *cache);
/* Finds or makes the plan and holds it; every acquire needs a release. */
mb_status mb_fft_acquire(mb_device *device, const mb_fft_desc *desc, mb_fft_plan **out);
void mb_fft_release(mb_device *device, mb_fft_plan *plan);
/* Destroys plans that nobody holds, oldest first, until at most `keep` are left; returns how many
** went. */
int mb_fft_cache_drop(mb_device *device, int keep);
/* The limit on what the library holds for plans, from now on: UINT64_MAX is none. Idle plans go,
** the least recently used first; plans in use stay, whatever they take. */
void mb_fft_cache_set_limit(mb_device *device, uint64_t bytes);
/* Copies of the plans, the latest used first, if there is room for all; how many there are. */
int mb_fft_cache_plans(mb_device *device, mb_fft_plan *out, int room, uint64_t *limit);
uint64_t mb_fft_cache_library_bytes(mb_device *device);
/* How often a plan with a derived work area was acquired so far, and how the latest one was
** derived. */
uint64_t mb_fft_cache_derived(const mb_device *device, const char **how);
/* Queued on the device's compute stream. `work` is the scratch slot declared for the plan. */
mb_status mb_fft_exec(mb_device *device, const mb_fft_plan *plan, void *in, void *out, void *work);

/*
** The size policy, in one place (fft_size.c): even 2-3-5-7-smooth sizes >= n. By smoothness alone:
*/
int64_t mb_fft_good_size(int64_t n);

/* What the size is of: real rows (the last axis), or an axis above them. */
typedef enum mb_fft_axis { MB_FFT_ROW, MB_FFT_COLUMN } mb_fft_axis;

typedef struct mb_fft_candidate {
    int64_t n;
    /* what the axis adds to the time of a point: picoseconds; without a record, relative */
    double ps;
    int work; /* 1 where it needs a work area as large as the data, else 0 */
} mb_fft_candidate;

#define MB_FFT_MAX_CANDIDATES 200

/* For a device: by the times and work areas recorded for it where there are any (*measured), the
** least product of time and memory; else by smoothness. `list` has room for MB_FFT_MAX_CANDIDATES
** and gets what was compared, ascending. */
int64_t mb_fft_choose_size(const mb_device *device, int64_t n, mb_fft_axis axis,
                           mb_fft_candidate *list, int *count, bool *measured);

/* The same for all axes of a real transform together (one to three, rows last), since one axis's
** work area is everyone's. Extents that are `given` stay as they are, and so do axes of 1 above the
** rows. Returns whether times decided. */
bool mb_fft_choose_grid(const mb_device *device, int rank, const int64_t *least, const bool *given,
                        int64_t *sizes);

#ifdef __cplusplus
}
#endif
#endif
