/*
** The inner loop of the host's backproject for 16 slices side by side, as a template:
** backproject_host.c includes it once per instruction set, with
**   NAME       the function to define
**   TARGET     its attribute
**   WIDTH      floats in a vector: 16, 8 or 4
**   PIXELS     pixels whose sums are held in registers at a time
**   WEIGHT     (row, i): weight i of a row of 16 as a number or in every lane
** Every instance does the same arithmetic in the same order.
*/
typedef float VECTOR(NAME) __attribute__((vector_size(4 * WIDTH)));

/* Adds `count` angles to the sums [pixel of the tile][lane]. */
TARGET
static void NAME(bool distance, float *sums, const float *packed, int64_t pitch,
                 const mb_tile_angles *t, int64_t count)
{
    typedef VECTOR(NAME) vector;
    enum { PARTS = LANES / WIDTH };
    for (int64_t k0 = 0; k0 < count; k0 += STEP) {
        int64_t many = count - k0 < STEP ? count - k0 : STEP;
        mb_parallel_shadow shadows[STEP];
        for (int64_t k = 0; distance && k < many; k++)
            shadows[k] = mb_parallel_shadow_of(t->cosine[k0 + k], t->sine[k0 + k]);
        for (int dy = 0; dy < TILE; dy++) {
            _Alignas(64) uint32_t place[STEP][TILE];
            _Alignas(64) float weight[STEP][TILE];
            for (int64_t k = 0; k < many; k++)
                locate(t, k0 + k, dy, distance ? &shadows[k] : NULL, sizeof(float) * LANES,
                       place[k], weight[k]);
            for (int dx = 0; dx < TILE; dx += PIXELS) {
                vector sum[PIXELS][PARTS];
                vector *out = (vector *)(void *)(sums + (dy * TILE + dx) * LANES);
#pragma GCC unroll 16
                for (int p = 0; p < PIXELS; p++)
#pragma GCC unroll 4
                    for (int i = 0; i < PARTS; i++)
                        sum[p][i] = out[p * PARTS + i];
                for (int64_t k = 0; k < many; k++) {
                    const char *window =
                        (const char *)(packed + ((k0 + k) * pitch + t->start[k0 + k]) * LANES);
#pragma GCC unroll 16
                    for (int p = 0; p < PIXELS; p++) {
                        const vector *q = (const vector *)(const void *)(window + place[k][dx + p]);
                        vector w = WEIGHT(weight[k], dx + p);
#pragma GCC unroll 4
                        for (int i = 0; i < PARTS; i++) {
                            vector lerp = q[PARTS + i] - q[i];
                            lerp = q[i] + w * lerp;
                            sum[p][i] += lerp;
                        }
                    }
                }
#pragma GCC unroll 16
                for (int p = 0; p < PIXELS; p++)
#pragma GCC unroll 4
                    for (int i = 0; i < PARTS; i++)
                        out[p * PARTS + i] = sum[p][i];
            }
        }
    }
}

#undef NAME
#undef TARGET
#undef WIDTH
#undef PIXELS
#undef WEIGHT
