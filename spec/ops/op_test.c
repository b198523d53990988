/*
** An operator that has no CUDA kernel, which no shipped one may be: what the driver says where it
** cannot run. The build makes this a program, spec/ops/host_only_spec.lua runs it. It prints the
** messages, or what went wrong with status 1.
*/
#include "device/dry/dry_backend.h"
#include "ops/op_args.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "op_test, line %d: %s: %s\n", __LINE__, #condition,                    \
                    mb_error_last()->text);                                                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* ---- the operator: twice its input ---- */

static const mb_op_arg args[] = {MB_ARRAY_IN("a", MB_BIT(MB_F32), 1, 1, "values"),
                                 MB_ARRAY_OUT("result", MB_BIT(MB_F32), 1, 1, "twice as much")};

static mb_status infer(const void *params, mb_spec *arrays)
{
    (void)params;
    arrays[1] = arrays[0];
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    (void)params, (void)arrays;
    mb_planner_slot(planner, "scratch", 1000, 0, 0);
}

static mb_status run_host(const mb_op_call *call)
{
    const float *a = call->arrays[0]->data;
    float *result = call->arrays[1]->data;
    for (int64_t i = 0; i < call->arrays[0]->shape.dims[0]; i++)
        result[i] = 2 * a[i];
    return MB_STATUS_OK;
}

static const mb_op host_only = {.name = "host_only",
                                .summary = "Twice its input, on the host alone.",
                                .args = args,
                                .arg_count = sizeof args / sizeof *args,
                                .infer = infer,
                                .plan = plan,
                                .run_host = run_host};

/* ---- what happens ---- */

static const mb_shape shape = {1, {3}};

static void runs_on_the_host(void)
{
    const float values[3] = {1, 2, 3};
    float twice[3];
    mb_device *host;
    mb_array *arrays[MB_OP_MAX_ARRAYS] = {NULL};
    const mb_operator entry = mb_operator_of(&host_only);
    EXPECT(mb_device_open("host", &host) == MB_STATUS_OK);
    EXPECT(mb_array_create(host, MB_F32, &shape, "op_test", &arrays[0]) == MB_STATUS_OK);
    EXPECT(mb_array_upload(arrays[0], values, sizeof values) == MB_STATUS_OK);
    EXPECT(mb_op_run(&entry, NULL, arrays, host, "op_test") == MB_STATUS_OK);
    EXPECT(mb_array_download(arrays[1], twice, sizeof twice) == MB_STATUS_OK);
    EXPECT(twice[0] == 2 && twice[1] == 4 && twice[2] == 6);
    mb_array_destroy(arrays[1]);
    mb_array_destroy(arrays[0]);
}

/* A plan for a GPU must not promise bytes for a call that the GPU then refuses. */
static void is_refused_elsewhere(const char *id)
{
    mb_device *device, *dry;
    mb_pool_stats before, after;
    mb_array *arrays[MB_OP_MAX_ARRAYS] = {NULL};
    mb_spec specs[MB_OP_MAX_ARRAYS] = {{true, MB_F32, {1, {3}}}};
    mb_op_estimate estimate;
    const mb_operator entry = mb_operator_of(&host_only);
    EXPECT(mb_device_open(id, &device) == MB_STATUS_OK);
    EXPECT(mb_device_open_dry(device, 0, &dry) == MB_STATUS_OK);
    EXPECT(mb_array_create(dry, MB_F32, &shape, "op_test", &arrays[0]) == MB_STATUS_OK);
    mb_pool_get_stats(dry->pool, &before);
    EXPECT(mb_op_run(&entry, NULL, arrays, dry, "op_test") == MB_STATUS_UNSUPPORTED);
    printf("%s: %s\n", mb_error_last()->op, mb_error_last()->text);
    mb_pool_get_stats(dry->pool, &after);
    EXPECT(arrays[1] == NULL && after.live == before.live && after.allocs == before.allocs);
    EXPECT(mb_op_estimate_memory(&entry, NULL, specs, NULL, device, &estimate) ==
           MB_STATUS_UNSUPPORTED);
    printf("%s: %s\n", mb_error_last()->op, mb_error_last()->text);
    mb_array_destroy(arrays[0]);
    mb_device_close_dry(dry);
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    char folder[4000] = "."; /* the plug-in is beside the program */
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - argv[0]), argv[0]);
    mb_device_set_plugin_folder(folder);
    runs_on_the_host();
    for (int i = 1; i < argc; i++)
        is_refused_elsewhere(argv[i]);
    EXPECT(mb_devices_close() == 0);
    puts("ok");
    return 0;
}
