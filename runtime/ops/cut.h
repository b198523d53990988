/*
** Cutting calls: how a call may be cut along an axis, for its arguments, and the pieces that make
** the rows of its result. Pure: nothing is allocated or run.
*/
#ifndef MB_OPS_CUT_H
#define MB_OPS_CUT_H

#include "ops/op.h"

/* A split, made exact by the arguments of a call. */
struct mb_op_cut {
    const mb_op_split *split;
    const mb_device *device; /* of the call */
    /* The axis along which each array is cut. -1: an input that is whole for every piece, or a
    ** result that is combined. */
    int axes[MB_OP_MAX_ARRAYS];
    int result; /* index of the first result among the arrays */
    mb_op_combine combine;
    int64_t packet;       /* rows of the result that are treated together */
    int64_t rows;         /* extent of the cut axis in the result; in the input, if combined */
    int64_t input_extent; /* extent of the cut axis of the first array */
};

/* How the call is cut along an axis (0-based) of its first array. `arrays` are all specs, as after
** mb_op_check. false: it cannot be cut there. */
bool mb_op_cut_along(const mb_operator *entry, const void *params, const mb_spec *arrays, int axis,
                     const mb_device *device, mb_op_cut *cut);
/* What these rows of the result need, not clipped. */
mb_rows mb_op_needs(const mb_op_cut *cut, const void *params, const mb_spec *arrays, mb_rows rows);
/* The piece that gives these rows of the result. `own` gets its parameters, `room` MB_OP_ROOM
** numbers that they may refer to. */
mb_op_piece mb_op_piece_of(const mb_op *op, const mb_op_cut *cut, const void *params,
                           const mb_spec *arrays, mb_rows rows, void *own, double *room);

#endif
