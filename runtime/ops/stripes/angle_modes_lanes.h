/*
** The inner loop of sums over angles and over modes, as a template: angle_modes_host.c includes it
** once per instruction set, with
**   NAME    the function to define
**   TARGET  its attribute
**   WIDTH   floats in a vector: 16, 8 or 4
** Adds in the order of k, in every instance.
*/
typedef float VECTOR(NAME) __attribute__((vector_size(4 * WIDTH)));

/* sums[r][c] = sum over k of weights[k][r] values[k][c], for the columns of a tile. */
TARGET
static void NAME(float *sums, const float *weights, const float *values, int64_t count)
{
    typedef VECTOR(NAME) vector;
    for (int c = 0; c < TILE; c += 2 * WIDTH) {
        vector sum[BLOCK][2];
#pragma GCC unroll 6
        for (int r = 0; r < BLOCK; r++)
            sum[r][0] = sum[r][1] = (vector){0};
        for (int64_t k = 0; k < count; k++) {
            const vector *v = (const vector *)(const void *)(values + k * TILE + c);
            vector low = v[0], high = v[1];
#pragma GCC unroll 6
            for (int r = 0; r < BLOCK; r++) {
                float w = weights[k * BLOCK + r];
                sum[r][0] += w * low;
                sum[r][1] += w * high;
            }
        }
#pragma GCC unroll 6
        for (int r = 0; r < BLOCK; r++) {
            vector *out = (vector *)(void *)(sums + r * TILE + c);
            out[0] = sum[r][0];
            out[1] = sum[r][1];
        }
    }
}

#undef NAME
#undef TARGET
#undef WIDTH
