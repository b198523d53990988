/* What the C API does at its edges: names, errors, estimates, dry runs. Compiled and run by
** c_api_spec.lua; prints what is wrong and ends with status 1. */
#include <moonbeam.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            moonbeam_error e_;                                                                     \
            moonbeam_last_error(&e_);                                                              \
            printf("line %d: not %s (%s)\n", __LINE__, #condition, e_.text);                       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int fails(moonbeam_status status, moonbeam_status expected, const char *text)
{
    moonbeam_error e;
    moonbeam_last_error(&e);
    if (status == expected && e.status == expected && strstr(e.text, text))
        return 1;
    printf("status %s instead of %s: %s\n", moonbeam_status_name(status),
           moonbeam_status_name(expected), e.text);
    return 0;
}

static void check_names(void)
{
    static const char *const names[] = {"ok",          "argument",  "shape",   "dtype",
                                        "budget",      "memory",    "device",  "io",
                                        "unsupported", "cancelled", "dry_run", "internal"};
    int arguments = 0;
    for (int i = MOONBEAM_OK; i <= MOONBEAM_INTERNAL; i++)
        CHECK(strcmp(moonbeam_status_name((moonbeam_status)i), names[i]) == 0);
    CHECK(strcmp(moonbeam_version(), MOONBEAM_VERSION) == 0);
    CHECK(moonbeam_op_count() > 40);
    for (int i = 0; i < moonbeam_op_count(); i++) {
        moonbeam_argument a;
        const char *op = moonbeam_op_name(i);
        CHECK(op && moonbeam_op_summary(op) && moonbeam_op_doc(op));
        for (int k = 0; moonbeam_argument_at(op, k, &a) == MOONBEAM_OK; k++, arguments++)
            CHECK(a.name && a.doc && (a.kind != MOONBEAM_CHOICE || a.choices[0]));
    }
    CHECK(arguments > 200 && !moonbeam_op_name(moonbeam_op_count()) && !moonbeam_op_summary("no"));
}

/* NULL in the place of a value, and an argument that is there twice. */
static void check_nothing(moonbeam_array *a)
{
    const double sigma[2] = {1, 1};
    const moonbeam_param array[] = {moonbeam_array_param("a", NULL), moonbeam_end()};
    const moonbeam_param values[] = {moonbeam_array_param("a", a),
                                     moonbeam_vector("sigma", NULL, 2), moonbeam_end()};
    const moonbeam_param fewer[] = {moonbeam_array_param("a", a),
                                    moonbeam_vector("sigma", sigma, -2), moonbeam_end()};
    const moonbeam_param twice[] = {moonbeam_array_param("a", a), moonbeam_number("sigma", 1),
                                    moonbeam_vector("sigma", sigma, 2), moonbeam_end()};
    CHECK(fails(moonbeam_run(NULL, "gaussian_filter", array), MOONBEAM_ARGUMENT,
                "a must be an array, got an array that is NULL"));
    CHECK(fails(moonbeam_run(NULL, "gaussian_filter", values), MOONBEAM_ARGUMENT,
                "sigma must be a vector, got a vector that is NULL"));
    CHECK(fails(moonbeam_run(NULL, "gaussian_filter", fewer), MOONBEAM_ARGUMENT,
                "sigma must be a vector, got one of -2 elements"));
    CHECK(fails(moonbeam_run(NULL, "gaussian_filter", twice), MOONBEAM_ARGUMENT,
                "sigma is given twice"));
}

static void check_errors(moonbeam_device *host, moonbeam_array *a)
{
    moonbeam_device *none;
    moonbeam_array *made;
    moonbeam_memory memory;
    const int64_t huge[2] = {1 << 20, 1 << 20}, negative[1] = {-1};
    float few[3];
    const moonbeam_param unknown[] = {moonbeam_array_param("sino", a), moonbeam_number("sige", 1),
                                      moonbeam_end()};
    const moonbeam_param choice[] = {moonbeam_array_param("sino", a),
                                     moonbeam_choice("filter", "no"), moonbeam_end()};
    const moonbeam_param kind[] = {moonbeam_number("sino", 1), moonbeam_end()};
    const moonbeam_param nothing[] = {moonbeam_result("result", &made), moonbeam_end()};
    CHECK(fails(moonbeam_device_open("gpu", &none), MOONBEAM_ARGUMENT, "gpu") && !none);
    CHECK(fails(moonbeam_array_create(host, "f31", 2, huge, &made), MOONBEAM_DTYPE, "f31"));
    CHECK(fails(moonbeam_array_create(host, "f32", 7, huge, &made), MOONBEAM_SHAPE, "7"));
    CHECK(fails(moonbeam_array_create(host, "f32", 1, negative, &made), MOONBEAM_SHAPE, "-1"));
    CHECK(fails(moonbeam_array_create(NULL, "f32", 2, huge, &made), MOONBEAM_ARGUMENT, "device"));
    CHECK(fails(moonbeam_array_create(host, "f64", 2, huge, &made), MOONBEAM_BUDGET, "") && !made);
    CHECK(fails(moonbeam_array_upload(a, few, sizeof few), MOONBEAM_SHAPE, "") ||
          fails(moonbeam_array_upload(a, few, sizeof few), MOONBEAM_ARGUMENT, ""));
    CHECK(fails(moonbeam_run(host, "no", nothing), MOONBEAM_ARGUMENT, "'no'"));
    CHECK(fails(moonbeam_run(host, "ramp_filter", unknown), MOONBEAM_ARGUMENT, "'sige'"));
    CHECK(fails(moonbeam_run(host, "ramp_filter", choice), MOONBEAM_ARGUMENT, "shepp-logan"));
    CHECK(fails(moonbeam_run(host, "ramp_filter", kind), MOONBEAM_ARGUMENT, "must be an array"));
    CHECK(fails(moonbeam_run(NULL, "ramp_filter", nothing), MOONBEAM_ARGUMENT, "sino is missing"));
    check_nothing(a);
    CHECK(moonbeam_device_memory(host, &memory) == MOONBEAM_OK);
}

/* estimate == peak of the call, on the dry device and on the real one. */
static uint64_t check_memory(moonbeam_device *device)
{
    const int64_t dims[3] = {3, 50, 100};
    int token;
    uint64_t peak;
    float data[2];
    moonbeam_array *a, *made;
    moonbeam_estimate estimate;
    CHECK(moonbeam_array_create(device, "f32", 3, dims, &a) == MOONBEAM_OK);
    CHECK(moonbeam_array_bytes(a) == 60000 && moonbeam_array_rank(a) == 3);
    CHECK(moonbeam_array_extent(a, 2) == 100 && moonbeam_array_extent(a, 3) == -1);
    const moonbeam_param params[] = {moonbeam_array_param("sino", a),
                                     moonbeam_result("result", &made), moonbeam_end()};
    CHECK(moonbeam_estimate_run(device, "ramp_filter", params, &estimate) == MOONBEAM_OK);
    CHECK(estimate.peak_bytes > 60000);
    CHECK(moonbeam_peak_begin(device, &token) == MOONBEAM_OK);
    CHECK(moonbeam_run(NULL, "ramp_filter", params) == MOONBEAM_OK && made);
    CHECK(moonbeam_peak_end(device, token, &peak) == MOONBEAM_OK && peak == estimate.peak_bytes);
    if (moonbeam_device_is_dry(device))
        CHECK(fails(moonbeam_array_download(made, data, 60000), MOONBEAM_DRY_RUN, ""));
    moonbeam_array_destroy(made);
    if (!moonbeam_device_is_dry(device))
        check_errors(device, a);
    CHECK(moonbeam_array_device(a) == device);
    moonbeam_array_destroy(a);
    return peak;
}

int main(void)
{
    moonbeam_device *host, *dry;
    moonbeam_memory memory;
    moonbeam_error e;
    char id[24];
    moonbeam_last_error(&e);
    CHECK(e.status == MOONBEAM_OK && e.text[0] == '\0');
    check_names();
    CHECK(moonbeam_device_count() >= 1);
    CHECK(moonbeam_device_id(0, id, sizeof id) == MOONBEAM_OK && strcmp(id, "host") == 0);
    CHECK(moonbeam_device_open("host", &host) == MOONBEAM_OK);
    CHECK(moonbeam_device_set_budget(host, 1 << 20) == MOONBEAM_OK);
    CHECK(moonbeam_device_open_dry(host, 0, &dry) == MOONBEAM_OK);
    const uint64_t predicted = check_memory(dry);
    moonbeam_device_close_dry(dry);
    CHECK(check_memory(host) == predicted);
    CHECK(moonbeam_device_memory(host, &memory) == MOONBEAM_OK);
    CHECK(memory.live == 0 && memory.budget == 1 << 20 && memory.peak > 0);
    CHECK(moonbeam_close() == 0);
    return 0;
}
