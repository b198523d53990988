/*
** Makes HDF5 scans that are damaged, incomplete, or lead elsewhere; for
** spec/files/h5/hostile_h5_spec.lua.
**
**   h5_hostile KIND FOLDER        writes FOLDER/s.h5, and what it refers to, into FOLDER
**   h5_hostile link FILE PATH OTHER OBJECT [PATH OTHER OBJECT ...]
**   h5_hostile measure PROGRAM [ARGUMENT ...]
**
** The scan is Data Exchange: 24 projections of 4 x 16, u16; KIND says what is wrong with it.
** "link" makes PATH of FILE, which is made if it is not there, an external link to OBJECT of the file
** OTHER. "measure" runs a program and prints, after what that prints, "STATUS KIBIBYTES" of its largest
** resident size.
*/
#define _GNU_SOURCE
#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

enum { FRAMES = 24, ROWS = 4, COLS = 16, FRAME = ROWS * COLS };

static uint16_t pixels[FRAMES * FRAME];
static const hsize_t EXTENT[3] = {FRAMES, ROWS, COLS}, HALF[3] = {FRAMES / 2, ROWS, COLS};

static void check(int64_t result, const char *what)
{
    if (result >= 0)
        return;
    fprintf(stderr, "h5_hostile: cannot %s\n", what);
    exit(1);
}

/* ---- datasets ---- */

static hid_t dataset(hid_t file, const char *path, hid_t type, int rank, const hsize_t *dims,
                     hid_t properties)
{
    const hid_t space = dims[0] == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, dims, NULL);
    const hid_t parents = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(parents, 1);
    const hid_t id = H5Dcreate2(file, path, type, space, parents, properties, H5P_DEFAULT);
    check(id, path);
    H5Pclose(parents);
    H5Sclose(space);
    return id;
}

static void write_pixels(hid_t file, const char *path, const hsize_t *dims)
{
    const hid_t id = dataset(file, path, H5T_NATIVE_UINT16, 3, dims, H5P_DEFAULT);
    check(H5Dwrite(id, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, pixels), "write");
    H5Dclose(id);
}

static hid_t chunked(const hsize_t *chunk, bool deflate)
{
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(properties, 3, chunk);
    if (deflate)
        H5Pset_deflate(properties, 9);
    return properties;
}

/* Writes `count` frames from `first` on. */
static void write_frames(hid_t id, hsize_t first, hsize_t count)
{
    const hsize_t start[3] = {first, 0, 0}, extent[3] = {count, ROWS, COLS};
    const hid_t space = H5Dget_space(id), memory = H5Screate_simple(3, extent, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, extent, NULL);
    check(H5Dwrite(id, H5T_NATIVE_UINT16, memory, space, H5P_DEFAULT, pixels + first * FRAME),
          "write frames");
    H5Sclose(memory);
    H5Sclose(space);
}

static void write_theta(hid_t file, const char *path, hsize_t count)
{
    double theta[64];
    for (hsize_t i = 0; i < count; i++)
        theta[i] = 180.0 * (double)i / (double)count;
    const hid_t id = dataset(file, path, H5T_NATIVE_DOUBLE, 1, &count, H5P_DEFAULT);
    check(H5Dwrite(id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, theta), "write theta");
    H5Dclose(id);
}

/* A file of its own with the first frames as dataset /d. */
static void write_source(const char *name, const hsize_t *dims)
{
    const hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    check(file, name);
    write_pixels(file, "/d", dims);
    H5Fclose(file);
}

/* ---- kinds: what is at /exchange/data, and beside it ---- */

#define DATA "/exchange/data"

static void never_contiguous(hid_t file)
{
    H5Dclose(dataset(file, DATA, H5T_NATIVE_UINT16, 3, EXTENT, H5P_DEFAULT));
}

static void half_chunks(hid_t file)
{
    const hsize_t chunk[3] = {1, ROWS, COLS};
    const hid_t properties = chunked(chunk, false);
    const uint16_t fill = 777;
    H5Pset_fill_value(properties, H5T_NATIVE_UINT16, &fill);
    const hid_t id = dataset(file, DATA, H5T_NATIVE_UINT16, 3, EXTENT, properties);
    write_frames(id, 0, 10);
    write_frames(id, 12, 9);
    H5Dclose(id);
}

static void half_packed(hid_t file)
{
    const hsize_t chunk[3] = {2, ROWS, COLS};
    const hid_t id = dataset(file, DATA, H5T_NATIVE_UINT16, 3, EXTENT, chunked(chunk, true));
    write_frames(id, 0, 12);
    H5Dclose(id);
}

static void huge_extent(hid_t file)
{
    const hsize_t extent[3] = {(hsize_t)1 << 31, ROWS, COLS}, chunk[3] = {1, ROWS, COLS};
    const hid_t id = dataset(file, DATA, H5T_NATIVE_UINT16, 3, extent, chunked(chunk, false));
    write_frames(id, 0, FRAMES);
    H5Dclose(id);
}

/* One chunk that says it decodes to a gigabyte, and to much more than there is. */
static void bomb(hid_t file)
{
    const hsize_t extent[3] = {FRAMES, ROWS, COLS}, most[3] = {H5S_UNLIMITED, ROWS, COLS},
                  chunk[3] = {(hsize_t)1 << 23, ROWS, COLS}, at[3] = {0};
    static unsigned char zeros[1 << 20], packed[1 << 20];
    z_stream z = {.next_out = packed, .avail_out = sizeof packed};
    deflateInit(&z, 9);
    for (int i = 0; i < 64; i++) {
        z.next_in = zeros;
        z.avail_in = sizeof zeros;
        deflate(&z, i == 63 ? Z_FINISH : Z_NO_FLUSH);
    }
    deflateEnd(&z);
    const hid_t space = H5Screate_simple(3, extent, most), properties = chunked(chunk, true);
    H5Pset_alloc_time(properties, H5D_ALLOC_TIME_INCR);
    const hid_t id =
        H5Dcreate2(file, DATA, H5T_NATIVE_UINT16, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    check(id, "make a bomb");
    check(H5Dwrite_chunk(id, H5P_DEFAULT, 0, at, z.total_out, packed), "write a bomb");
    H5Dclose(id);
}

static void huge_element(hid_t file)
{
    const hsize_t extent[3] = {FRAMES, 1, 1};
    const hid_t type = H5Tcopy(H5T_NATIVE_UINT16);
    H5Tset_size(type, 1 << 20);
    H5Dclose(dataset(file, DATA, type, 3, extent, H5P_DEFAULT));
}

/* Floats four times as large as they look. */
static void odd_bias(hid_t file)
{
    const hid_t type = H5Tcopy(H5T_NATIVE_FLOAT);
    H5Tset_ebias(type, 129);
    H5Dclose(dataset(file, DATA, type, 3, EXTENT, H5P_DEFAULT));
}

static const char *storage_file;

static void external_storage(hid_t file)
{
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(properties, storage_file, 0, sizeof pixels);
    H5Dclose(dataset(file, DATA, H5T_NATIVE_UINT16, 3, EXTENT, properties));
}

static void link_to(hid_t file, const char *name, const char *path)
{
    const hid_t parents = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(parents, 1);
    check(H5Lcreate_external(name, path, file, DATA, parents, H5P_DEFAULT), "link");
    H5Pclose(parents);
}

static void link_beside(hid_t file)
{
    write_source("p0.h5", EXTENT);
    link_to(file, "p0.h5", "/d");
}

static void link_outside(hid_t file)
{
    write_source("../outside.h5", EXTENT);
    link_to(file, "../outside.h5", "/d");
}

/* The file is beside, by its name. */
static void link_by_symlink(hid_t file)
{
    write_source("../outside.h5", EXTENT);
    check(symlink("../outside.h5", "p0.h5"), "make a symbolic link");
    link_to(file, "p0.h5", "/d");
}

static void link_dangling(hid_t file)
{
    link_to(file, "gone.h5", "/d");
}

static void link_no_object(hid_t file)
{
    write_source("p0.h5", EXTENT);
    link_to(file, "p0.h5", "/other");
}

static void link_pipe(hid_t file)
{
    check(mkfifo("pipe.h5", 0666), "make a pipe");
    link_to(file, "pipe.h5", "/d");
}

static void link_circle(hid_t file)
{
    link_to(file, "s.h5", DATA);
}

/* A virtual dataset of two halves. */
static void halves(hid_t file, const char *first, const char *first_path, const char *second,
                   const char *second_path)
{
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE),
                space = H5Screate_simple(3, EXTENT, NULL), half = H5Screate_simple(3, HALF, NULL);
    const char *const names[2] = {first, second}, *const paths[2] = {first_path, second_path};
    for (int i = 0; i < 2; i++) {
        const hsize_t start[3] = {(hsize_t)(i * FRAMES / 2), 0, 0};
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, HALF, NULL);
        if (names[i] != NULL)
            check(H5Pset_virtual(properties, space, names[i], paths[i], half), "map");
    }
    H5Dclose(dataset(file, DATA, H5T_NATIVE_UINT16, 3, EXTENT, properties));
}

static void virtual_sound(hid_t file)
{
    write_source("p0.h5", HALF);
    write_source("p%1.h5", HALF);
    halves(file, "p0.h5", "/d", "p%%1.h5", "/d");
}

static void virtual_half(hid_t file)
{
    write_source("p0.h5", HALF);
    halves(file, "p0.h5", "/d", NULL, NULL);
}

static void virtual_no_file(hid_t file)
{
    write_source("p0.h5", HALF);
    halves(file, "p0.h5", "/d", "p%%9.h5", "/d");
}

static void virtual_no_dataset(hid_t file)
{
    write_source("p0.h5", HALF);
    halves(file, "p0.h5", "/d", "p0.h5", "/other");
}

static void virtual_not_hdf5(hid_t file)
{
    FILE *text = fopen("p1.h5", "w");
    fputs("no HDF5 at all\n", text);
    fclose(text);
    write_source("p0.h5", HALF);
    halves(file, "p0.h5", "/d", "p1.h5", "/d");
}

static void virtual_small_source(hid_t file)
{
    const hsize_t less[3] = {FRAMES / 4, ROWS, COLS};
    write_source("p0.h5", HALF);
    write_source("p1.h5", less);
    halves(file, "p0.h5", "/d", "p1.h5", "/d");
}

static void virtual_never_written(hid_t file)
{
    write_source("p0.h5", HALF);
    const hid_t source = H5Fcreate("p1.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Dclose(dataset(source, "/d", H5T_NATIVE_UINT16, 3, HALF, H5P_DEFAULT));
    H5Fclose(source);
    halves(file, "p0.h5", "/d", "p1.h5", "/d");
}

static void virtual_nested(hid_t file)
{
    write_source("p0.h5", HALF);
    const hid_t source = H5Fcreate("p1.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE), all = H5Screate_simple(3, HALF, NULL);
    H5Pset_virtual(properties, all, "gone.h5", "/d", all);
    H5Dclose(dataset(source, "/d", H5T_NATIVE_UINT16, 3, HALF, properties));
    H5Fclose(source);
    halves(file, "p0.h5", "/d", "p1.h5", "/d");
}

static void virtual_self(hid_t file)
{
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE), all = H5Screate_simple(3, EXTENT, NULL);
    H5Pset_virtual(properties, all, ".", DATA, all);
    H5Dclose(dataset(file, DATA, H5T_NATIVE_UINT16, 3, EXTENT, properties));
}

static void virtual_outside(hid_t file)
{
    write_source("p0.h5", HALF);
    write_source("../outside.h5", HALF);
    halves(file, "p0.h5", "/d", "../outside.h5", "/d");
}

/* Frames come from files of their own in turn: block b from p<b>.h5. */
static void blocks(hid_t file, int there)
{
    const hsize_t most[3] = {H5S_UNLIMITED, ROWS, COLS}, start[3] = {0}, one[3] = {1, ROWS, COLS},
                  stride[3] = {1, ROWS, COLS}, count[3] = {H5S_UNLIMITED, 1, 1};
    char name[32];
    for (int b = 0; b < there; b++) {
        snprintf(name, sizeof name, "p%d.h5", b);
        write_source(name, one);
    }
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE),
                space = H5Screate_simple(3, EXTENT, most), source = H5Screate_simple(3, one, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, one);
    check(H5Pset_virtual(properties, space, "p%b.h5", "/d", source), "map blocks");
    H5Sselect_all(space);
    const hid_t parents = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(parents, 1);
    const hid_t id =
        H5Dcreate2(file, DATA, H5T_NATIVE_UINT16, space, parents, properties, H5P_DEFAULT);
    check(id, "make blocks");
    H5Dclose(id);
}

static void virtual_blocks(hid_t file)
{
    blocks(file, FRAMES);
}

static void sound(hid_t file)
{
    write_pixels(file, DATA, EXTENT);
}

/* ---- what is wrong elsewhere ---- */

static void never_theta(hid_t file)
{
    const hsize_t count = FRAMES;
    sound(file);
    H5Dclose(dataset(file, "/exchange/theta", H5T_NATIVE_DOUBLE, 1, &count, H5P_DEFAULT));
}

static void never_white(hid_t file)
{
    const hsize_t dims[3] = {2, ROWS, COLS};
    sound(file);
    H5Dclose(dataset(file, "/exchange/data_white", H5T_NATIVE_UINT16, 3, dims, H5P_DEFAULT));
}

/* A text of 64 MiB, which takes little in the file. */
static void long_text(hid_t file)
{
    static char text[64 << 20];
    const hsize_t one = 1;
    const hid_t type = H5Tcopy(H5T_C_S1), properties = H5Pcreate(H5P_DATASET_CREATE);
    sound(file);
    H5Tset_size(type, sizeof text);
    H5Pset_chunk(properties, 1, &one);
    H5Pset_deflate(properties, 9);
    const hid_t id =
        dataset(file, "/measurement/instrument/detector/pixel_size", type, 1, &one, properties);
    check(H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text), "write a text");
    H5Dclose(id);
}

static const struct {
    const char *name;
    void (*make)(hid_t file);
} KINDS[] = {
    {"sound", sound},
    {"never-contiguous", never_contiguous},
    {"never-theta", never_theta},
    {"never-white", never_white},
    {"half-chunks", half_chunks},
    {"half-packed", half_packed},
    {"huge-extent", huge_extent},
    {"huge-element", huge_element},
    {"odd-bias", odd_bias},
    {"bomb", bomb},
    {"long-text", long_text},
    {"external-storage", external_storage},
    {"link-beside", link_beside},
    {"link-outside", link_outside},
    {"link-by-symlink", link_by_symlink},
    {"link-dangling", link_dangling},
    {"link-no-object", link_no_object},
    {"link-pipe", link_pipe},
    {"link-circle", link_circle},
    {"virtual-sound", virtual_sound},
    {"virtual-half", virtual_half},
    {"virtual-no-file", virtual_no_file},
    {"virtual-no-dataset", virtual_no_dataset},
    {"virtual-not-hdf5", virtual_not_hdf5},
    {"virtual-small-source", virtual_small_source},
    {"virtual-never-written", virtual_never_written},
    {"virtual-nested", virtual_nested},
    {"virtual-self", virtual_self},
    {"virtual-outside", virtual_outside},
    {"virtual-blocks", virtual_blocks},
};

/* What a Data Exchange file has beside its data, where the kind did not make it. */
static void complete(hid_t file)
{
    const hsize_t two[3] = {2, ROWS, COLS};
    if (H5Lexists(file, "/exchange/theta", H5P_DEFAULT) <= 0)
        write_theta(file, "/exchange/theta", FRAMES);
    for (int i = 0; i < 2 * FRAME; i++)
        pixels[i] = 20000;
    if (H5Lexists(file, "/exchange/data_white", H5P_DEFAULT) <= 0)
        write_pixels(file, "/exchange/data_white", two);
    for (int i = 0; i < 2 * FRAME; i++)
        pixels[i] = 100;
    write_pixels(file, "/exchange/data_dark", two);
}

static int make(const char *kind, const char *folder, const char *other)
{
    for (int i = 0; i < FRAMES * FRAME; i++)
        pixels[i] = (uint16_t)(9000 + 37 * (i % COLS) + i / FRAME);
    check(chdir(folder), "enter the folder");
    storage_file = other != NULL ? other : "storage.raw";
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++)
        if (strcmp(kind, KINDS[i].name) == 0) {
            const hid_t file = H5Fcreate("s.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
            check(file, "create s.h5");
            if (strcmp(kind, "bomb") == 0) /* whose group is not made with it */
                H5Gclose(H5Gcreate2(file, "/exchange", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
            KINDS[i].make(file);
            complete(file);
            check(H5Fclose(file), "close s.h5");
            return 0;
        }
    fprintf(stderr, "h5_hostile: there is no kind '%s'\n", kind);
    return 2;
}

static int make_links(const char *path, char **arguments)
{
    const hid_t parents = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(parents, 1);
    const hid_t file = access(path, F_OK) == 0
                           ? H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT)
                           : H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    check(file, path);
    for (; arguments[0] && arguments[1] && arguments[2]; arguments += 3)
        check(H5Lcreate_external(arguments[1], arguments[2], file, arguments[0], parents,
                                 H5P_DEFAULT),
              "link");
    check(H5Fclose(file), "close the file");
    H5Pclose(parents);
    return 0;
}

static int measure(char **arguments)
{
    int ended = 0;
    struct rusage used;
    const pid_t child = fork();
    if (child == 0) {
        execv(arguments[0], arguments);
        _exit(127);
    }
    wait4(child, &ended, 0, &used);
    printf("%d %ld\n", WIFEXITED(ended) ? WEXITSTATUS(ended) : -WTERMSIG(ended), used.ru_maxrss);
    return 0;
}

int main(int count, char **arguments)
{
    if (count >= 6 && strcmp(arguments[1], "link") == 0)
        return make_links(arguments[2], arguments + 3);
    if (count >= 3 && strcmp(arguments[1], "measure") == 0)
        return measure(arguments + 2);
    if (count < 3) {
        fprintf(stderr, "usage: h5_hostile KIND FOLDER [STORAGE]\n");
        return 2;
    }
    /* HDF5 1.10 frees some lists of virtual sources twice at the end. */
    H5dont_atexit();
    return make(arguments[1], arguments[2], count > 3 ? arguments[3] : NULL);
}
