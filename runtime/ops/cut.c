/*
** How a call is cut along an axis: what the descriptor says, for these arguments.
*/
#include "ops/op_args.h"
#include <string.h>

const mb_op_split mb_stack_split[] = MB_SPLIT_STACK(NULL);
const mb_op_split mb_elements_split[] = MB_SPLIT_AXES(.combine = MB_COMBINE_NONE);

static const mb_op_split *find_split(const mb_op *op, int axis)
{
    for (const mb_op_split *split = op->split; split && split->axis >= 0; split++)
        if (split->axis == axis)
            return split;
    return NULL;
}

static int first_result(const mb_operator *entry)
{
    for (int i = 0; i < entry->array_count; i++)
        if (entry->arrays[i]->kind != MB_ARG_IN)
            return i;
    return -1;
}

bool mb_op_cut_along(const mb_operator *entry, const void *params, const mb_spec *arrays, int axis,
                     const mb_device *device, mb_op_cut *cut)
{
    const mb_op_split *split = find_split(entry->op, axis);
    memset(cut, 0, sizeof *cut);
    if (!split || entry->array_count == 0 || axis >= arrays[0].shape.rank)
        return false;
    cut->split = split;
    cut->device = device;
    cut->combine = split->combine;
    cut->packet = 1;
    cut->result = first_result(entry);
    for (int i = 0; i < entry->array_count; i++)
        cut->axes[i] = i == 0 || split->alike & 1u << i ? axis : -1;
    if (cut->result > 0)
        cut->axes[cut->result] = split->result_axis;
    if (split->adapt && !split->adapt(params, arrays, cut))
        return false;
    for (int i = 0; i < entry->array_count; i++)
        if (!arrays[i].present)
            cut->axes[i] = -1;
    const int along = cut->axes[cut->result];
    cut->input_extent = arrays[0].shape.dims[axis];
    cut->rows = along >= 0 ? arrays[cut->result].shape.dims[along] : cut->input_extent;
    if (split->packet)
        cut->packet = split->packet(params, arrays, axis, device);
    return true;
}

mb_rows mb_op_needs(const mb_op_cut *cut, const void *params, const mb_spec *arrays, mb_rows rows)
{
    const mb_op_split *split = cut->split;
    return split->needs ? split->needs(params, arrays, split->axis, rows) : rows;
}

static int64_t clip(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

mb_op_piece mb_op_piece_of(const mb_op *op, const mb_op_cut *cut, const void *params,
                           const mb_spec *arrays, mb_rows rows, void *own, double *room)
{
    const mb_rows needs = mb_op_needs(cut, params, arrays, rows);
    const int64_t n = cut->input_extent;
    mb_op_piece piece = {.rows = rows};
    /* At least one row, so that no operator has to make something of nothing. */
    piece.input.first = clip(needs.first, 0, n > 0 ? n - 1 : 0);
    piece.input.end = clip(needs.end, n > 0 ? piece.input.first + 1 : 0, n);
    piece.skip = rows.first - piece.input.first;
    memcpy(own, params, op->params_bytes);
    if (cut->split->piece)
        cut->split->piece(arrays, cut->split->axis, &piece, own, room);
    return piece;
}
