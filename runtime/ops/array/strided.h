/*
** Walking strided arrays on the host: up to three operands of one shape as an outer odometer and
** inner runs. The order of elements is free: axes are sorted by the stride of operand 0 (the
** destination), extents of 1 dropped, and axes that all operands can join are joined, so dense
** arrays become one run whatever their axis order. Work is cut into pieces (a part of one run
** each), which OpenMP loops share out.
*/
#ifndef MB_OPS_STRIDED_H
#define MB_OPS_STRIDED_H

#include "array/array.h"

#define MB_WALK_OPERANDS 3
/* Fewer elements than this are not worth waking other threads for. */
#define MB_WALK_SERIAL 32768

typedef struct mb_walk {
    int operands, rank;
    int64_t dims[MB_MAX_RANK];
    int64_t strides[MB_WALK_OPERANDS][MB_MAX_RANK];
    int64_t outer;  /* runs */
    int64_t run;    /* elements of a run, along the last axis */
    int64_t block;  /* elements of a piece, at most */
    int64_t blocks; /* pieces per run */
    int64_t pieces;
} mb_walk;

typedef struct mb_walk_piece {
    int64_t count;
    int64_t offset[MB_WALK_OPERANDS]; /* elements */
    int64_t stride[MB_WALK_OPERANDS];
} mb_walk_piece;

static inline int64_t mb_walk_abs(int64_t value)
{
    return value < 0 ? -value : value;
}

/* Sorts, joins, and cuts runs into blocks of at most `block`. */
static inline void mb_walk_finish(mb_walk *w, int64_t block)
{
    int rank = 0;
    for (int i = 1; i < w->rank; i++) {
        for (int j = i; j > 0 && mb_walk_abs(w->strides[0][j - 1]) < mb_walk_abs(w->strides[0][j]);
             j--) {
            int64_t keep = w->dims[j];
            w->dims[j] = w->dims[j - 1];
            w->dims[j - 1] = keep;
            for (int k = 0; k < w->operands; k++) {
                keep = w->strides[k][j];
                w->strides[k][j] = w->strides[k][j - 1];
                w->strides[k][j - 1] = keep;
            }
        }
    }
    for (int i = 0; i < w->rank; i++) {
        bool join = rank > 0;
        if (w->dims[i] == 1)
            continue;
        for (int k = 0; k < w->operands; k++)
            join = join && w->strides[k][rank - 1] == w->strides[k][i] * w->dims[i];
        if (!join)
            rank++;
        w->dims[rank - 1] = join ? w->dims[rank - 1] * w->dims[i] : w->dims[i];
        for (int k = 0; k < w->operands; k++)
            w->strides[k][rank - 1] = w->strides[k][i];
    }
    if (rank == 0) {
        w->dims[0] = 1;
        for (int k = 0; k < w->operands; k++)
            w->strides[k][0] = 1;
        rank = 1;
    }
    w->rank = rank;
    w->run = w->dims[rank - 1];
    w->outer = 1;
    for (int i = 0; i < rank - 1; i++)
        w->outer *= w->dims[i];
    w->block = block;
    w->blocks = w->run / block + (w->run % block != 0);
    w->pieces = w->outer * w->blocks;
}

/* One to three operands of the shape; strides[k] are operand k's. An empty shape has no pieces. */
static inline mb_walk mb_walk_make(const mb_shape *shape, int operands,
                                   const int64_t *const *strides, int64_t block)
{
    mb_walk w = {.operands = operands, .rank = shape->rank};
    for (int i = 0; i < shape->rank && i < MB_MAX_RANK; i++) { /* the bound is for gcc */
        w.dims[i] = shape->dims[i];
        for (int k = 0; k < operands; k++)
            w.strides[k][i] = strides[k][i];
    }
    mb_walk_finish(&w, block);
    return w;
}

static inline mb_walk_piece mb_walk_at(const mb_walk *w, int64_t piece)
{
    mb_walk_piece p;
    int64_t run = piece / w->blocks, start = piece % w->blocks * w->block;
    p.count = w->run - start < w->block ? w->run - start : w->block;
    for (int k = 0; k < w->operands; k++) {
        p.stride[k] = w->strides[k][w->rank - 1];
        p.offset[k] = start * p.stride[k];
    }
    for (int i = w->rank - 2; i >= 0; i--) {
        int64_t index = run % w->dims[i];
        run /= w->dims[i];
        for (int k = 0; k < w->operands; k++)
            p.offset[k] += index * w->strides[k][i];
    }
    return p;
}

#endif
