/*
** The one driver: check, infer, plan, place, run. Estimate and run share every step but the last
** two, so the estimate is the allocation.
*/
#include "device/ledger.h"
#include "ops/check.h"
#include <stdio.h>
#include <string.h>

/* A call under way. */
typedef struct call {
    const mb_operator *entry;
    const void *params;
    mb_device *device;
    const char *owner;
    mb_array **arrays; /* the caller's: inputs and given results, then all */
    mb_spec *specs;
    bool made[MB_OP_MAX_ARRAYS]; /* by this call */
    mb_op_kernel kernel;
    mb_planner *planner;
    mb_block scratch;
} call;

/* ---- plan ---- */

/* The kernel, asked for before anything is planned: a plan for a device that then refuses the
** call is none. */
static mb_status find_kernel(call *c)
{
    c->kernel = mb_operator_kernel(c->entry, c->device);
    if (c->kernel)
        return MB_STATUS_OK;
    return mb_fail(MB_STATUS_UNSUPPORTED, NULL,
                   "%s runs on the host alone: it has no kernel for %s; move its inputs with "
                   "a:to(\"host\")",
                   c->entry->op->name, c->device->id);
}

/* Is nothing to be computed? */
static bool is_empty(const call *c)
{
    for (int i = 0; i < c->entry->array_count; i++)
        if (c->entry->arrays[i]->kind != MB_ARG_IN && c->specs[i].present &&
            mb_shape_elements(&c->specs[i].shape))
            return false;
    return true;
}

static mb_status plan(call *c)
{
    mb_planner_begin(c->planner, c->device);
    MB_TRY(find_kernel(c));
    if (c->entry->op->plan && !is_empty(c))
        c->entry->op->plan(c->params, c->specs, c->planner);
    return mb_planner_assign(c->planner);
}

/* Bytes of the pool that array `i` takes when it is a result that nobody gave, else 0. */
static uint64_t result_bytes(const call *c, int i, bool given)
{
    uint64_t bytes = 0;
    if (c->entry->arrays[i]->kind != MB_ARG_OUT || !c->specs[i].present || given ||
        mb_shape_bytes(&c->specs[i].shape, c->specs[i].dtype, &bytes) != MB_STATUS_OK)
        return 0;
    return mb_pool_round(bytes);
}

mb_status mb_op_estimate_memory(const mb_operator *entry, const void *params, mb_spec *arrays,
                                const bool *given, mb_device *device, mb_op_estimate *out)
{
    mb_planner planner;
    call c = {
        .entry = entry, .params = params, .device = device, .specs = arrays, .planner = &planner};
    memset(out, 0, sizeof *out);
    MB_TRY(mb_op_check(entry, params, arrays));
    mb_status status = plan(&c);
    if (status == MB_STATUS_OK) {
        for (int i = 0; i < entry->array_count; i++)
            out->result_bytes =
                mb_bytes_add(out->result_bytes, result_bytes(&c, i, given && given[i]));
        out->scratch_bytes = planner.extent;
        out->peak_bytes = mb_bytes_add(out->result_bytes, out->scratch_bytes);
        out->slot_count = planner.slot_count;
        memcpy(out->slots, planner.slots, (size_t)planner.slot_count * sizeof *out->slots);
    }
    mb_planner_finish(&planner);
    if (status != MB_STATUS_OK)
        mb_error_name_op(entry->op->name);
    return status;
}

/* ---- place ---- */

/* Adds to the failure of a call that does not fit as a whole which part of it is the first that
** does not. */
static void describe_refused(const call *c, uint64_t room)
{
    mb_budget *budget = mb_error_budget();
    char shape[96];
    snprintf(budget->request, sizeof budget->request, "scratch");
    for (int i = 0; i < c->entry->array_count; i++) {
        const uint64_t bytes = result_bytes(c, i, c->arrays[i]);
        if (bytes > room) {
            snprintf(budget->request, sizeof budget->request, "result '%s', %s %s",
                     c->entry->arrays[i]->name, mb_dtype_name(c->specs[i].dtype),
                     mb_shape_format(&c->specs[i].shape, shape, sizeof shape));
            break;
        }
        room -= bytes;
    }
}

/* Does the whole call fit, its scratch and the results that nobody gave? Asked before anything of
** it is live. */
static mb_status check_room(const call *c)
{
    uint64_t need = c->planner->extent;
    for (int i = 0; i < c->entry->array_count; i++)
        need = mb_bytes_add(need, result_bytes(c, i, c->arrays[i]));
    mb_status status = mb_pool_fits(c->device->pool, need, c->entry->op->name);
    if (status == MB_STATUS_BUDGET) {
        mb_pool_stats stats;
        mb_pool_get_stats(c->device->pool, &stats);
        describe_refused(c, stats.free_bytes);
    }
    return status;
}

static mb_status place(call *c)
{
    MB_TRY(check_room(c));
    for (int i = 0; i < c->entry->array_count; i++)
        if (c->entry->arrays[i]->kind == MB_ARG_OUT && !c->arrays[i] && c->specs[i].present) {
            MB_TRY(mb_array_create(c->device, c->specs[i].dtype, &c->specs[i].shape, c->owner,
                                   &c->arrays[i]));
            c->made[i] = true;
        }
    return mb_pool_alloc(c->device->pool, c->planner->extent, MB_POOL_SCRATCH, c->entry->op->name,
                         &c->scratch);
}

static void drop_results(call *c)
{
    for (int i = 0; i < c->entry->array_count; i++)
        if (c->made[i]) {
            mb_array_destroy(c->arrays[i]);
            c->arrays[i] = NULL;
        }
}

/* ---- run ---- */

static mb_status launch(const call *c)
{
    mb_op_call launched = {.op = c->entry->op, .params = c->params, .device = c->device};
    memcpy(launched.arrays, c->arrays, (size_t)c->entry->array_count * sizeof *c->arrays);
    for (int i = 0; i < c->planner->slot_count; i++) {
        const mb_slot *slot = &c->planner->slots[i];
        launched.slot_bytes[i] = slot->bytes;
        launched.slots[i] = slot->bytes ? (char *)c->scratch.address + slot->offset : NULL;
    }
    for (int i = 0; i < c->planner->fft_count; i++)
        launched.ffts[i] = c->planner->ffts[i];
    if (c->device->backend->stream)
        launched.stream = c->device->backend->stream(c->device->self);
    return mb_device_launch(c->device, c->kernel, &launched);
}

static void note(const call *c, uint64_t before, uint64_t peak)
{
    const uint64_t live = mb_pool_live(c->device->pool), work = mb_planner_work(c->planner);
    mb_ledger_note(c->device, &(mb_ledger_row){.kind = MB_LEDGER_OPERATOR,
                                               .label = c->entry->op->name,
                                               .owner = c->owner,
                                               .keep = (int64_t)(live - before),
                                               .temp = c->planner->extent - work,
                                               .work = work,
                                               .live = live,
                                               .peak = peak});
}

/* Plans, places and runs what has been checked. */
static mb_status execute(call *c)
{
    const bool noted = mb_ledger_on(c->device);
    const uint64_t before = noted ? mb_pool_live(c->device->pool) : 0;
    uint64_t peak = 0;
    mb_status status = plan(c);
    mb_ledger_hush(1);
    if (status == MB_STATUS_OK)
        status = place(c);
    if (noted)
        peak = mb_pool_live(c->device->pool);
    if (status == MB_STATUS_OK && !is_empty(c))
        status = launch(c);
    mb_pool_free(c->device->pool, &c->scratch);
    if (status != MB_STATUS_OK)
        drop_results(c);
    mb_ledger_hush(-1);
    if (status == MB_STATUS_OK && noted)
        note(c, before, peak);
    mb_planner_finish(c->planner);
    return status;
}

static mb_status run(call *c)
{
    MB_TRY(mb_cancel_check());
    MB_TRY(mb_device_alive(c->device));
    for (int i = 0; i < c->entry->array_count; i++)
        if (c->arrays[i]) {
            MB_TRY(mb_op_check_device(c->entry->arrays[i], c->arrays[i], c->device));
            c->specs[i] = mb_array_spec(c->arrays[i]);
        }
    MB_TRY(mb_op_check(c->entry, c->params, c->specs));
    MB_TRY(mb_op_check_places(c->entry, c->arrays, c->specs));
    return execute(c);
}

mb_status mb_op_run(const mb_operator *entry, const void *params, mb_array **arrays,
                    mb_device *device, const char *owner)
{
    mb_spec specs[MB_OP_MAX_ARRAYS] = {0};
    mb_planner planner;
    call c = {.entry = entry,
              .params = params,
              .device = device,
              .owner = owner,
              .arrays = arrays,
              .specs = specs,
              .planner = &planner,
              .scratch = {.node = UINT32_MAX}};
    mb_status status = run(&c);
    if (status != MB_STATUS_OK)
        mb_error_name_op(entry->op->name);
    return status;
}
