/*
** The error record (one per thread) and the process's cancel flag.
*/
#include "core/status.h"
#include "core/wake.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local mb_error record;
static atomic_bool cancelled;

static const char *const status_names[MB_STATUS_COUNT] = {
    [MB_STATUS_OK] = "ok",
    [MB_STATUS_ARGUMENT] = "argument",
    [MB_STATUS_SHAPE] = "shape",
    [MB_STATUS_DTYPE] = "dtype",
    [MB_STATUS_BUDGET] = "budget",
    [MB_STATUS_MEMORY] = "memory",
    [MB_STATUS_DEVICE] = "device",
    [MB_STATUS_IO] = "io",
    [MB_STATUS_UNSUPPORTED] = "unsupported",
    [MB_STATUS_CANCELLED] = "cancelled",
    [MB_STATUS_DRY_RUN] = "dry_run",
    [MB_STATUS_INTERNAL] = "internal",
};

const char *mb_status_name(mb_status status)
{
    return (unsigned)status < MB_STATUS_COUNT ? status_names[status] : "unknown";
}

/* Formats a text into `room` bytes. Of a longer one, as of a value that a user gave by mistake, the
** middle is left out: its end says what to do. */
static void format_cut(char *text, size_t room, const char *format, va_list values)
{
    static const char left_out[] = " ... ";
    va_list again;
    va_copy(again, values);
    const int length = vsnprintf(text, room, format, values);
    char *whole = length >= (int)room ? malloc((size_t)length + 1) : NULL;
    if (whole) {
        const size_t half = (room - sizeof left_out) / 2;
        vsnprintf(whole, (size_t)length + 1, format, again);
        memcpy(text, whole, half);
        memcpy(text + half, left_out, sizeof left_out - 1);
        memcpy(text + half + sizeof left_out - 1, whole + (size_t)length - half, half + 1);
        free(whole);
    }
    va_end(again);
}

/* The text is formatted before the record is emptied: its values may lie in the record. */
mb_status mb_vfail(mb_status code, const char *arg, const char *format, va_list values)
{
    char text[sizeof record.text];
    format_cut(text, sizeof text, format, values);
    record = (mb_error){.code = code};
    memcpy(record.text, text, sizeof text);
    if (arg)
        snprintf(record.arg, sizeof record.arg, "%s", arg);
    return code;
}

mb_status mb_fail(mb_status code, const char *arg, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    mb_vfail(code, arg, format, values);
    va_end(values);
    return code;
}

mb_status mb_fail_bytes(mb_status code, uint64_t need, uint64_t limit, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    mb_vfail(code, NULL, format, values);
    va_end(values);
    record.need_bytes = need;
    record.limit_bytes = limit;
    return code;
}

void mb_error_name_op(const char *op)
{
    if (!record.op[0])
        snprintf(record.op, sizeof record.op, "%s", op);
}

void mb_error_remedy(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(record.budget.remedy, sizeof record.budget.remedy, format, values);
    va_end(values);
}

mb_budget *mb_error_budget(void)
{
    return &record.budget;
}

const mb_error *mb_error_last(void)
{
    return &record;
}

void mb_error_put(const mb_error *error)
{
    record = *error;
}

mb_error mb_error_take(void)
{
    if (record.code == MB_STATUS_OK)
        mb_fail(MB_STATUS_INTERNAL, NULL, "a failure left no error record");
    const mb_error taken = record;
    record.code = MB_STATUS_OK;
    return taken;
}

void mb_cancel_set(bool on)
{
    atomic_store(&cancelled, on);
    if (on)
        mb_wake_ring();
}

bool mb_cancelled(void)
{
    return atomic_load_explicit(&cancelled, memory_order_relaxed);
}

mb_status mb_cancel_check(void)
{
    return mb_cancelled() ? mb_fail(MB_STATUS_CANCELLED, NULL, "interrupted") : MB_STATUS_OK;
}
