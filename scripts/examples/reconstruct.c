/*
** Reconstructs a phantom with the C API, and knows the memory before the run:
**
**     cc -std=c11 reconstruct.c $(pkg-config --cflags --libs moonbeam) -lm && ./a.out slice.pgm
**
** The same function runs on a dry device, which gives its peak, and on the real device. The program
** ends with status 1 if the peaks differ or the slices are not those of the phantom.
*/
#include <math.h>
#include <moonbeam.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 128, ROWS = 3, ANGLES = 200 };

/* Density per pixel; half axes a, b, c; center x, y, z in pixels; rotation. */
static const double PHANTOM[] = {
    0.02, 50, 56, 40, 0,   0,  0, 0,   /* a head */
    0.01, 12, 20, 40, -18, 5,  0, 0.3, /* something dense in it */
    0.01, 8,  8,  40, 20,  -9, 0, 0,
};
static const double HEIGHTS[ROWS] = {-8, 0, 8};
enum { PHANTOM_COUNT = sizeof PHANTOM / sizeof PHANTOM[0] };

static void check(moonbeam_status status)
{
    moonbeam_error error;
    if (status == MOONBEAM_OK)
        return;
    moonbeam_last_error(&error);
    fprintf(stderr, "%s error: %s\n", moonbeam_status_name(status), error.text);
    exit(1);
}

/* Slices (z, y, x) by filtered back-projection from simulated projections (angle, row, column). */
static moonbeam_array *reconstruct(moonbeam_device *device, const double *angles)
{
    static const int by_row[3] = {1, 0, 2};
    moonbeam_array *projections, *filtered, *sinograms, *slices;
    const moonbeam_param project[] = {moonbeam_vector("ellipsoids", PHANTOM, PHANTOM_COUNT),
                                      moonbeam_vector("angles", angles, ANGLES),
                                      moonbeam_vector("heights", HEIGHTS, ROWS),
                                      moonbeam_number("cols", SIZE),
                                      moonbeam_result("result", &projections),
                                      moonbeam_end()};
    check(moonbeam_run(device, "ellipsoid_projections", project));

    const moonbeam_param filter[] = {moonbeam_array_param("sino", projections),
                                     moonbeam_choice("filter", "shepp-logan"),
                                     moonbeam_result("result", &filtered), moonbeam_end()};
    check(moonbeam_run(NULL, "ramp_filter", filter));
    moonbeam_array_destroy(projections);

    check(moonbeam_array_permute(filtered, by_row, &sinograms));
    const moonbeam_param back[] = {moonbeam_array_param("sino", sinograms),
                                   moonbeam_vector("angles", angles, ANGLES),
                                   moonbeam_result("result", &slices), moonbeam_end()};
    check(moonbeam_run(NULL, "backproject", back));
    moonbeam_array_destroy(sinograms);
    moonbeam_array_destroy(filtered);
    return slices;
}

/* The most bytes that reconstruct() has live on the device. */
static uint64_t peak_of(moonbeam_device *device, const double *angles, moonbeam_array **slices)
{
    int token;
    uint64_t bytes;
    check(moonbeam_peak_begin(device, &token));
    *slices = reconstruct(device, angles);
    check(moonbeam_peak_end(device, token, &bytes));
    return bytes;
}

/* Root mean square of the differences, relative to that of the phantom. */
static double error_of(const float *slices, const float *truth, size_t count)
{
    double difference = 0, whole = 0;
    for (size_t i = 0; i < count; i++) {
        difference += pow((double)slices[i] - (double)truth[i], 2);
        whole += pow((double)truth[i], 2);
    }
    return sqrt(difference / whole);
}

static int write_picture(const char *name, const float *slice)
{
    FILE *file = fopen(name, "wb");
    if (!file)
        return 0;
    fprintf(file, "P5 %d %d 255\n", SIZE, SIZE);
    for (int i = 0; i < SIZE * SIZE; i++)
        fputc((int)fmin(255, fmax(0, (double)slice[i] / 0.035 * 255)), file);
    return fclose(file) == 0;
}

int main(int argc, char **argv)
{
    static float slices[ROWS * SIZE * SIZE], truth[ROWS * SIZE * SIZE];
    double angles[ANGLES], size = SIZE;
    moonbeam_device *device, *dry;
    moonbeam_array *planned, *made, *phantom;
    for (int i = 0; i < ANGLES; i++)
        angles[i] = i * 3.14159265358979323846 / ANGLES;

    check(moonbeam_device_open(argc > 2 ? argv[2] : "host", &device));
    check(moonbeam_device_open_dry(device, 0, &dry));
    const uint64_t predicted = peak_of(dry, angles, &planned);
    moonbeam_array_destroy(planned);
    moonbeam_device_close_dry(dry);

    const uint64_t measured = peak_of(device, angles, &made);
    check(moonbeam_array_download(made, slices, sizeof slices));
    moonbeam_array_destroy(made);

    const moonbeam_param draw[] = {moonbeam_vector("ellipsoids", PHANTOM, PHANTOM_COUNT),
                                   moonbeam_vector("heights", HEIGHTS, ROWS),
                                   moonbeam_vector("size", &size, 1),
                                   moonbeam_result("result", &phantom), moonbeam_end()};
    check(moonbeam_run(device, "ellipsoid_volume", draw));
    check(moonbeam_array_download(phantom, truth, sizeof truth));
    moonbeam_array_destroy(phantom);

    const double error = error_of(slices, truth, ROWS * SIZE * SIZE);
    const unsigned long long lost = moonbeam_close();
    printf("Moonbeam %s\npeak: predicted %llu, measured %llu bytes\n", moonbeam_version(),
           (unsigned long long)predicted, (unsigned long long)measured);
    printf("error %.4f of the phantom, %llu blocks lost\n", error, lost);
    if (argc > 1 && !write_picture(argv[1], slices + SIZE * SIZE)) {
        fprintf(stderr, "cannot write %s\n", argv[1]);
        return 1;
    }
    return predicted == measured && error < 0.12 && lost == 0 ? 0 : 1;
}
