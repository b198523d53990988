/*
** Error record (one per thread) and the process's cancel flag.
*/
#include "core/status.h"
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
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

static bool record_open(mb_status code, const char *arg)
{
    if (record.code != MB_STATUS_OK)
        return false; /* the first failure is the cause; later ones are consequences */
    memset(&record, 0, sizeof record);
    record.code = code;
    if (arg)
        snprintf(record.arg, sizeof record.arg, "%s", arg);
    return true;
}

mb_status mb_fail(mb_status code, const char *arg, const char *format, ...)
{
    if (record_open(code, arg)) {
        va_list args;
        va_start(args, format);
        vsnprintf(record.text, sizeof record.text, format, args);
        va_end(args);
    }
    return code;
}

mb_status mb_fail_bytes(mb_status code, uint64_t need, uint64_t limit, const char *format, ...)
{
    if (record_open(code, NULL)) {
        va_list args;
        va_start(args, format);
        vsnprintf(record.text, sizeof record.text, format, args);
        va_end(args);
        record.need_bytes = need;
        record.limit_bytes = limit;
    }
    return code;
}

void mb_error_describe(const char *request)
{
    if (record.code == MB_STATUS_BUDGET)
        snprintf(record.request, sizeof record.request, "%s", request);
}

void mb_error_enough(uint64_t enough, uint64_t total)
{
    if (record.code == MB_STATUS_BUDGET) {
        record.enough_bytes = enough;
        record.total_bytes = total;
    }
}

void mb_error_remedy(const char *text)
{
    if (record.code == MB_STATUS_BUDGET)
        snprintf(record.remedy, sizeof record.remedy, "%s", text);
}

void mb_error_name_op(const char *op)
{
    if (record.code != MB_STATUS_OK && !record.op[0])
        snprintf(record.op, sizeof record.op, "%s", op);
}

const mb_error *mb_error_last(void)
{
    return &record;
}

void mb_error_clear(void)
{
    record.code = MB_STATUS_OK;
    record.op[0] = record.arg[0] = record.text[0] = '\0';
    record.need_bytes = record.limit_bytes = record.enough_bytes = record.total_bytes = 0;
    record.request[0] = record.remedy[0] = '\0';
}

void mb_error_restore(const mb_error *error)
{
    record = *error;
}

void mb_cancel_set(bool on)
{
    atomic_store(&cancelled, on);
}

bool mb_cancelled(void)
{
    return atomic_load_explicit(&cancelled, memory_order_relaxed);
}

mb_status mb_cancel_check(void)
{
    return mb_cancelled() ? mb_fail(MB_STATUS_CANCELLED, NULL, "interrupted") : MB_STATUS_OK;
}
