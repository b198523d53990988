/*
** Status codes and the error record.
**
** Every fallible function returns an mb_status. The function that knows what is wrong composes the
** failure by mb_fail, which opens the calling thread's record afresh; nobody clears a record.
** Outer layers return the status, and may add what they know (operator, request, remedy); they
** never compose the failure again. The record is valid directly after a call that failed, and
** means nothing after a call that did not: a failure that is handled leaves nothing to undo.
**
** Clean-up that can fail itself, on the way out of a failure or in a function that returns no
** status, begins with MB_KEEP_ERROR, so that the cause survives it. Whoever reports a failure later
** or on another thread copies the record, and puts it on record there by mb_error_put.
*/
#ifndef MB_CORE_STATUS_H
#define MB_CORE_STATUS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum mb_status {
    MB_STATUS_OK = 0,
    MB_STATUS_ARGUMENT,    /* a value outside its documented range, an unknown option, wrong use */
    MB_STATUS_SHAPE,       /* rank or extents do not fit */
    MB_STATUS_DTYPE,       /* element type not accepted */
    MB_STATUS_BUDGET,      /* the request does not fit the device's budget */
    MB_STATUS_MEMORY,      /* the system refused memory that the budget allowed */
    MB_STATUS_DEVICE,      /* device missing, launch failed, device dead */
    MB_STATUS_IO,          /* file missing, unreadable, truncated, disk full */
    MB_STATUS_UNSUPPORTED, /* understood, but this backend or build cannot do it */
    MB_STATUS_CANCELLED,   /* Ctrl-C */
    MB_STATUS_DRY_RUN,     /* a value was asked for in a dry run */
    MB_STATUS_INTERNAL,
    MB_STATUS_COUNT
} mb_status;

#define MB_ERROR_OWNERS 5

/* The blocks of one owner, a string that lives as long as the process (NULL: C code). */
typedef struct mb_owner_sum {
    const char *owner;
    uint64_t bytes, blocks;
} mb_owner_sum;

/* What a budget failure knows beside its text, which says only what is wrong. */
typedef struct mb_budget {
    uint64_t enough_bytes; /* the smallest budget that would have worked, else 0 */
    uint64_t total_bytes;  /* what the device has in all, else 0 */
    char request[160];     /* what was asked for ("result 'y', f32 4 x 5"), or empty */
    char remedy[200];      /* what to do, where no budget helps, or empty */
    /* The state of the pool that refused; `device` is empty where nobody has added it. */
    char device[24];
    uint64_t live, peak, free, largest_hole;
    const char *owner;                    /* who asked; it lives as long as the process */
    mb_owner_sum owners[MB_ERROR_OWNERS]; /* those with the most bytes, largest first */
    int owner_count;
    /* What was done before the request was made again. */
    uint64_t collected_arrays, collected_bytes, dropped_plans;
} mb_budget;

typedef struct mb_error {
    mb_status code;
    char op[40];          /* operator, or empty */
    char arg[40];         /* offending argument, or empty */
    char text[1000];      /* one helpful line: what, which value, what to do */
    uint64_t need_bytes;  /* of failures by mb_fail_bytes, else 0 */
    uint64_t limit_bytes; /* likewise */
    mb_budget budget;     /* of MB_STATUS_BUDGET */
} mb_error;

#if defined(__GNUC__)
#define MB_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define MB_PRINTF(fmt, args)
#endif

/* "ok", "argument", "shape", ...: the code of Lua's error objects. */
const char *mb_status_name(mb_status status);

/* Records a failure and returns `code`. `arg` may be NULL. The values of `format` may lie in the
** record that is replaced, as the text of a cause does. */
mb_status mb_fail(mb_status code, const char *arg, const char *format, ...) MB_PRINTF(3, 4);
mb_status mb_vfail(mb_status code, const char *arg, const char *format, va_list values)
    MB_PRINTF(3, 0);
/* The same with the bytes that were needed and the limit they hit. */
mb_status mb_fail_bytes(mb_status code, uint64_t need, uint64_t limit, const char *format, ...)
    MB_PRINTF(4, 5);
/* Names the operator in the record if the record has none yet. */
void mb_error_name_op(const char *op);
/* What to do about the budget failure on record where no budget helps. */
void mb_error_remedy(const char *format, ...) MB_PRINTF(1, 2);
/* The budget part of the record, to be added to after a call that returned MB_STATUS_BUDGET. */
mb_budget *mb_error_budget(void);

/* The calling thread's record, valid until the next failure of this thread. */
const mb_error *mb_error_last(void);
/* Makes a copied record this thread's. */
void mb_error_put(const mb_error *error);
/* The record for its report. The next one to take it finds an internal error, unless something has
** failed in between: a status without a record does not show an old failure as its cause. */
mb_error mb_error_take(void);

/* In a function that cleans up: what fails until the block ends leaves the record as it is. */
#define MB_KEEP_ERROR                                                                              \
    mb_error mb_kept_error_ __attribute__((cleanup(mb_error_put), unused)) = *mb_error_last()

/*
** The cancel flag: one atomic for the process, set by the SIGINT handler. It is polled between
** launches and chunks, and by host kernels between rows, tiles or blocks of some milliseconds:
** they skip what is left, and mb_op_run then fails. Setting it wakes threads that sleep
** (core/wake.h). Any thread and any signal handler may set it.
*/
void mb_cancel_set(bool cancelled);
bool mb_cancelled(void);
/* MB_STATUS_CANCELLED with a record when the flag is set, else MB_STATUS_OK. Does not clear the
** flag. */
mb_status mb_cancel_check(void);

#define MB_TRY(call)                                                                               \
    do {                                                                                           \
        mb_status mb_try_status_ = (call);                                                         \
        if (mb_try_status_ != MB_STATUS_OK)                                                        \
            return mb_try_status_;                                                                 \
    } while (0)

#endif
