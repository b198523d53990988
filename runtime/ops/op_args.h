/*
** Argument tables of operators, one macro an argument (op.h says what the fields mean). The file of
** an operator defines PARAMS, the name of its parameter structure, before its table. The macros of
** numbers take the member of PARAMS, which is also the name of the argument. A range is two
** numbers, both included, or MB_ANY; a unit is text or NULL; the doc is one line.
*/
#ifndef MB_OPS_OP_ARGS_H
#define MB_OPS_OP_ARGS_H

#include "ops/cut.h"
#include <math.h>

#define MB_ANY 0, 0

/* ---- arrays: name, dtypes, least and most axes, doc ---- */

#define MB_ARRAY_ARG(kind_, required_, name_, dtypes_, least, most, doc_)                          \
    {                                                                                              \
        .name = name_, .kind = kind_, .required = required_, .dtypes = dtypes_, .rank_min = least, \
        .rank_max = most, .doc = doc_                                                              \
    }
#define MB_ARRAY_IN(...) MB_ARRAY_ARG(MB_ARG_IN, true, __VA_ARGS__)
#define MB_ARRAY_IN_OPTION(...) MB_ARRAY_ARG(MB_ARG_IN, false, __VA_ARGS__)
#define MB_ARRAY_INOUT(...) MB_ARRAY_ARG(MB_ARG_INOUT, true, __VA_ARGS__)
#define MB_ARRAY_INOUT_OPTION(...) MB_ARRAY_ARG(MB_ARG_INOUT, false, __VA_ARGS__)
#define MB_ARRAY_OUT(...) MB_ARRAY_ARG(MB_ARG_OUT, false, __VA_ARGS__)

/* ---- numbers: name, kind, required, member, range, initial value, unit, doc ---- */

#define MB_NUMBER_ARG(name_, kind_, required_, member, least, most, initial_, unit_, doc_)         \
    {                                                                                              \
        .name = name_, .kind = kind_, .required = required_, .min = least, .max = most,            \
        .initial = initial_, .offset = offsetof(PARAMS, member), .unit = unit_, .doc = doc_        \
    }
/* MB_NUMBER_ARG expands MB_ANY to two arguments only when it is reached by another macro. */
#define MB_NUMBER(...) MB_NUMBER_ARG(__VA_ARGS__)

/* member, range, initial value, unit, doc; a required number of initial value NAN may be NaN */
#define MB_INT(member, ...) MB_NUMBER(#member, MB_ARG_INT, false, member, __VA_ARGS__)
#define MB_FLOAT(member, ...) MB_NUMBER(#member, MB_ARG_FLOAT, false, member, __VA_ARGS__)
#define MB_INT_REQUIRED(member, ...) MB_NUMBER(#member, MB_ARG_INT, true, member, __VA_ARGS__)
#define MB_FLOAT_REQUIRED(member, ...) MB_NUMBER(#member, MB_ARG_FLOAT, true, member, __VA_ARGS__)
/* member, range, unit, doc */
#define MB_VECTOR_ARG(name_, required_, member, least, most, ...)                                  \
    MB_NUMBER_ARG(name_, MB_ARG_VECTOR, required_, member, least, most, 0, __VA_ARGS__)
#define MB_VECTOR_NAMED(...) MB_VECTOR_ARG(__VA_ARGS__)
#define MB_VECTOR(member, ...) MB_VECTOR_NAMED(#member, true, member, __VA_ARGS__)
#define MB_VECTOR_OPTION(member, ...) MB_VECTOR_NAMED(#member, false, member, __VA_ARGS__)

/* member, initial value, doc */
#define MB_BOOL(member, initial, doc)                                                              \
    MB_NUMBER(#member, MB_ARG_BOOL, false, member, MB_ANY, initial, NULL, doc)

/* ---- enums: member, choices (NULL-terminated), initial index, doc ---- */

#define MB_ENUM_ARG(name_, required_, member, choices_, initial_, doc_)                            \
    {                                                                                              \
        .name = name_, .kind = MB_ARG_ENUM, .required = required_, .initial = initial_,            \
        .choices = choices_, .offset = offsetof(PARAMS, member), .doc = doc_                       \
    }
#define MB_ENUM(member, ...) MB_ENUM_ARG(#member, false, member, __VA_ARGS__)
#define MB_ENUM_REQUIRED(member, choices, doc) MB_ENUM_ARG(#member, true, member, choices, 0, doc)

/* ---- checks of vectors ---- */

static inline mb_status mb_check_whole(const char *name, const mb_vector *vector)
{
    for (int64_t i = 0; i < vector->count; i++)
        if (vector->values[i] != floor(vector->values[i]))
            return mb_fail(MB_STATUS_ARGUMENT, name,
                           "element %lld of %s is %g; it must be a whole number", (long long)i + 1,
                           name, vector->values[i]);
    return MB_STATUS_OK;
}

/* None, or two whole numbers. */
static inline mb_status mb_check_pair(const char *name, const mb_vector *pair)
{
    if (pair->count && pair->count != 2)
        return mb_fail(MB_STATUS_ARGUMENT, name, "%s has %lld numbers; give two", name,
                       (long long)pair->count);
    return mb_check_whole(name, pair);
}

/* A number for each of so many axes, or with `one` a single number for all. */
static inline mb_status mb_check_axes(const char *name, const mb_vector *vector, int64_t axes,
                                      bool one)
{
    if (vector->count == axes || (one && vector->count == 1))
        return MB_STATUS_OK;
    return mb_fail(MB_STATUS_ARGUMENT, name,
                   "%s has %lld numbers; give %sone for each of the %lld axes", name,
                   (long long)vector->count, one ? "one, or " : "", (long long)axes);
}

/* ---- splits ---- */

#define MB_SPLIT_END                                                                               \
    {                                                                                              \
        .axis = -1                                                                                 \
    }
#define MB_SPLIT_AXIS(n, ...)                                                                      \
    {                                                                                              \
        .axis = n, .result_axis = n, __VA_ARGS__                                                   \
    }
/* Every axis; the further fields are those of each. */
#define MB_SPLIT_AXES(...)                                                                         \
    {                                                                                              \
        MB_SPLIT_AXIS(0, __VA_ARGS__), MB_SPLIT_AXIS(1, __VA_ARGS__),                              \
            MB_SPLIT_AXIS(2, __VA_ARGS__), MB_SPLIT_AXIS(3, __VA_ARGS__),                          \
            MB_SPLIT_AXIS(4, __VA_ARGS__), MB_SPLIT_AXIS(5, __VA_ARGS__), MB_SPLIT_END             \
    }
/* Elementwise operators. */
extern const mb_op_split mb_elements_split[];

/* Slices of a stack: the first of three axes. An array of two axes is one slice. */
static inline bool mb_stack_adapt(const void *params, const mb_spec *arrays, mb_op_cut *cut)
{
    (void)params, (void)cut;
    return arrays[0].shape.rank == 3;
}
/* With the function that says how many slices are a packet, or NULL. */
#define MB_SPLIT_STACK(packet_)                                                                    \
    {                                                                                              \
        MB_SPLIT_AXIS(0, .when = "there are three axes", .adapt = mb_stack_adapt,                  \
                      .packet = packet_),                                                          \
            MB_SPLIT_END                                                                           \
    }

extern const mb_op_split mb_stack_split[]; /* MB_SPLIT_STACK(NULL) */

/* Any axis of frames but the columns, which are whole: those of one frame are its second axis. */
static inline bool mb_whole_rows_adapt(const void *params, const mb_spec *arrays, mb_op_cut *cut)
{
    (void)params;
    return cut->split->axis <= arrays[0].shape.rank - 2;
}

/* The packet of operators for which two slices are one complex image. */
static inline int64_t mb_packet_pair(const void *params, const mb_spec *arrays, int axis,
                                     const mb_device *device)
{
    (void)params, (void)arrays, (void)axis, (void)device;
    return 2;
}

/* The numbers of a piece, from a list that has one for each row. */
static inline mb_vector mb_vector_part(const mb_vector *vector, mb_rows rows)
{
    return (mb_vector){vector->values + rows.first, rows.end - rows.first};
}

/* ---- the descriptor: what most operators' files name alike ---- */

#define MB_OP_PARTS_OF(run)                                                                        \
    .args = args, .arg_count = sizeof args / sizeof *args, .params_bytes = sizeof(PARAMS),         \
    .samples = samples, .sample_count = sizeof samples / sizeof *samples, .infer = infer,          \
    .run_host = run
#define MB_OP_PARTS MB_OP_PARTS_OF(run_host)
/* Of operators that also have `plan`, and of those that also have `split`. */
#define MB_OP_PLANNED_PARTS MB_OP_PARTS, .plan = plan
#define MB_OP_SPLIT_PARTS MB_OP_PARTS, .split = split
#define MB_OP_ALL_PARTS MB_OP_PLANNED_PARTS, .split = split

#endif
