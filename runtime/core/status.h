/*
** Status codes and the error record. Every fallible function returns an mb_status; the first
** failure of a thread fills that thread's error record (code, operator, argument, text, need,
** limit). Later failures leave the record alone until mb_error_clear, so the cause survives
** clean-up. Whoever swallows a failure must clear the record.
*/
#ifndef MB_CORE_STATUS_H
#define MB_CORE_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

typedef struct mb_error {
    mb_status code;
    char op[40];          /* operator, or empty */
    char arg[40];         /* offending argument, or empty */
    char text[1000];      /* one helpful line: what, which value, what to do */
    uint64_t need_bytes;  /* budget and memory failures, else 0 */
    uint64_t limit_bytes; /* likewise */
    /* Of budget failures, whose text says only what is wrong: */
    uint64_t enough_bytes; /* the smallest budget that would have worked, else 0 */
    uint64_t total_bytes;  /* what the device has in all, else 0 */
    char request[160];     /* what was asked for ("result 'y', f32 4 x 5"), or empty */
    char remedy[200];      /* what to do, where no budget helps, or empty */
} mb_error;

#if defined(__GNUC__)
#define MB_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define MB_PRINTF(fmt, args)
#endif

/* "ok", "argument", "shape", ...: the code of Lua's error objects. */
const char *mb_status_name(mb_status status);

/* Records a failure (if none is recorded yet) and returns `code`. `arg` may be NULL. */
mb_status mb_fail(mb_status code, const char *arg, const char *format, ...) MB_PRINTF(3, 4);
/* The same with the bytes that were needed and the limit they hit. */
mb_status mb_fail_bytes(mb_status code, uint64_t need, uint64_t limit, const char *format, ...)
    MB_PRINTF(4, 5);
/* Add to a budget failure what was asked for; the budget that would do on a device of so many
** bytes; what to do where no budget helps. They do nothing when the record is of another kind. */
void mb_error_describe(const char *request);
void mb_error_enough(uint64_t enough, uint64_t total);
void mb_error_remedy(const char *text);
/* Names the operator in the record if it has none yet. */
void mb_error_name_op(const char *op);

/* The calling thread's record; code is MB_STATUS_OK when nothing failed. Valid until the next call.
** */
const mb_error *mb_error_last(void);
void mb_error_clear(void);
/* Puts a copied record back: moves a worker thread's failure to the thread that reports it. */
void mb_error_restore(const mb_error *error);

/*
** The cancel flag: one atomic for the process, set by the SIGINT handler. It is polled between
** launches and chunks, and by host kernels between rows, tiles or blocks of some milliseconds:
** they skip what is left, and mb_op_run then fails.
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

#ifdef __cplusplus
}
#endif
#endif
