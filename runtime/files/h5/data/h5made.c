/*
** What a created file must be found to have before it gets its name: its datasets, the sources of
** virtual ones, and rows that were written (h5verify.c compares).
*/
#define _GNU_SOURCE
#include "files/h5/data/h5data.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- datasets ---- */

mb_status mb_h5_remember(mb_h5_dataset *dataset)
{
    mb_h5 *file = dataset->file;
    h5_made *made;
    if (!file->created)
        return MB_STATUS_OK;
    made = calloc(1, sizeof *made);
    if (!made || (made->path = strdup(dataset->path)) == NULL) {
        free(made);
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for a dataset handle");
    }
    made->info = dataset->info;
    made->number = file->made_count++;
    made->next = file->made;
    file->made = made;
    dataset->made = made->number;
    return MB_STATUS_OK;
}

static void forget_sources(h5_made *made)
{
    for (int64_t i = 0; i < made->source_count; i++) {
        free((char *)made->sources[i].file);
        free((char *)made->sources[i].path);
    }
    free(made->sources);
    made->sources = NULL;
    made->source_count = 0;
}

mb_status mb_h5_remember_sources(h5_made *made, const mb_h5_source *sources, int64_t count)
{
    made->sources = calloc((size_t)count + 1, sizeof *sources);
    for (int64_t i = 0; i < count && made->sources; i++) {
        mb_h5_source *copy = &made->sources[made->source_count++];
        *copy = sources[i];
        copy->file = strdup(sources[i].file);
        copy->path = strdup(sources[i].path);
        if (!copy->file || !copy->path)
            return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for names");
    }
    return made->sources ? MB_STATUS_OK
                         : mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for names");
}

void mb_h5_forget_made(mb_h5 *file)
{
    while (file->made) {
        h5_made *made = file->made;
        file->made = made->next;
        forget_sources(made);
        free(made->path);
        free(made);
    }
    file->made_count = 0;
    free(file->samples);
    file->samples = NULL;
    file->sample_count = 0;
}

/* ---- samples ---- */

/* FNV-1a over 8 bytes at a time, then the rest. */
uint64_t mb_h5_sum(const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    uint64_t sum = 14695981039346656037u;
    for (; count >= 8; count -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        sum = (sum ^ word) * 1099511628211u;
        sum ^= sum >> 29;
    }
    for (; count > 0; count--, at++)
        sum = (sum ^ *at) * 1099511628211u;
    return sum;
}

/* Guards the samples of files and the `file` of datasets that other threads write to: a leaf, so
** that those threads need not wait for what the library does. */
static pthread_mutex_t samples_lock = PTHREAD_MUTEX_INITIALIZER;

void mb_h5_leave_file(mb_h5_dataset *dataset)
{
    pthread_mutex_lock(&samples_lock);
    dataset->file = NULL;
    pthread_mutex_unlock(&samples_lock);
}

static void forget_samples(mb_h5 *file, const mb_h5_dataset *dataset, const mb_range *ranges)
{
    for (int i = 0; i < file->sample_count;) {
        const h5_sample *s = &file->samples[i];
        bool touched = s->made == dataset->made;
        for (int axis = 0; touched && axis < dataset->info.rank; axis++) {
            const int64_t count = axis == dataset->info.rank - 1 ? s->count : 1;
            const int64_t last = ranges[axis].first + (ranges[axis].count - 1) * ranges[axis].step;
            touched = s->first[axis] <= last && s->first[axis] + count > ranges[axis].first;
        }
        if (touched)
            file->samples[i] = file->samples[--file->sample_count];
        else
            i++;
    }
}

/* Remembers the last row of a written piece, to be read back before the file gets its name. */
static void take_sample(mb_h5_dataset *dataset, const mb_range *ranges, mb_dtype dtype,
                        const unsigned char *host, uint64_t elements)
{
    mb_h5 *file = dataset->file;
    const int rank = dataset->info.rank;
    if (dataset->made < 0 || rank == 0 || dtype != dataset->info.dtype ||
        dataset->info.stored[0] == 'e' || ranges[rank - 1].step != 1)
        return;
    if (!file->samples)
        file->samples = calloc(H5_MAX_SAMPLES, sizeof *file->samples);
    if (!file->samples)
        return;
    if (file->sample_count == H5_MAX_SAMPLES) { /* thin out */
        file->sample_count = H5_MAX_SAMPLES / 2;
        for (int i = 0; i < file->sample_count; i++)
            file->samples[i] = file->samples[2 * i];
    }
    h5_sample *sample = &file->samples[file->sample_count++];
    const size_t row = (size_t)ranges[rank - 1].count * mb_dtype_bytes(dtype);
    sample->made = dataset->made;
    sample->dtype = dtype;
    sample->count = ranges[rank - 1].count;
    for (int axis = 0; axis < rank - 1; axis++)
        sample->first[axis] = ranges[axis].first + (ranges[axis].count - 1) * ranges[axis].step;
    sample->first[rank - 1] = ranges[rank - 1].first;
    sample->sum = mb_h5_sum(host + elements * mb_dtype_bytes(dtype) - row, row);
}

void mb_h5_sample(mb_h5_dataset *dataset, const mb_range *ranges, mb_dtype dtype, const void *host,
                  uint64_t elements)
{
    pthread_mutex_lock(&samples_lock);
    if (dataset->file && dataset->made >= 0) {
        forget_samples(dataset->file, dataset, ranges);
        if (host)
            take_sample(dataset, ranges, dtype, host, elements);
    }
    pthread_mutex_unlock(&samples_lock);
}
