/*
** embed: what the host and the CUDA kernel share. Arrays: a (in, any strides), result (out f32,
** padded rows, dense or not). No scratch. Grid element p of an axis comes from source element
** mb_pad_source(mode, p - before, n); the elements of a row behind its samples become 0.
*/
#ifndef MB_OPS_OP_EMBED_H
#define MB_OPS_OP_EMBED_H

#include "ops/array/op_pad.h"
#include "ops/array/padded_grid.h"

typedef struct mb_embed_params {
    mb_vector size, before; /* one number per axis; before may be absent (0) */
    int boundary;           /* mb_embed_boundary */
} mb_embed_params;

typedef enum mb_embed_boundary {
    MB_EMBED_ZERO,
    MB_EMBED_CIRCULAR,
    MB_EMBED_REFLECT,   /* c b a | a b c d | d c b */
    MB_EMBED_MIRROR,    /* d c b | a b c d | c b a */
    MB_EMBED_REPLICATE, /* a a a | a b c d | d d d */
} mb_embed_boundary;

/* The same in the terms of mb_pad_source. */
static inline int mb_embed_pad_mode(int boundary)
{
    static const int modes[] = {MB_PAD_CONSTANT, MB_PAD_WRAP, MB_PAD_SYMMETRIC, MB_PAD_REFLECT,
                                MB_PAD_EDGE};
    return modes[boundary];
}

enum { MB_EMBED_A, MB_EMBED_RESULT };

#endif
