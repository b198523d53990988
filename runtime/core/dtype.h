/*
** Element types. One table (MB_DTYPES) gives name, C type, bytes and class; everything else is
** derived from it.
*/
#ifndef MB_CORE_DTYPE_H
#define MB_CORE_DTYPE_H

#include "core/status.h"
#include <stddef.h>

/* MB_DTYPE(enum suffix, name, bytes, class) */
#define MB_DTYPES(MB_DTYPE)                                                                        \
    MB_DTYPE(U8, "u8", 1, MB_CLASS_INT)                                                            \
    MB_DTYPE(U16, "u16", 2, MB_CLASS_INT)                                                          \
    MB_DTYPE(I32, "i32", 4, MB_CLASS_INT)                                                          \
    MB_DTYPE(F16, "f16", 2, MB_CLASS_REAL)                                                         \
    MB_DTYPE(F32, "f32", 4, MB_CLASS_REAL)                                                         \
    MB_DTYPE(F64, "f64", 8, MB_CLASS_REAL)                                                         \
    MB_DTYPE(C64, "c64", 8, MB_CLASS_COMPLEX)                                                      \
    MB_DTYPE(C128, "c128", 16, MB_CLASS_COMPLEX)

typedef enum mb_dtype_class { MB_CLASS_INT, MB_CLASS_REAL, MB_CLASS_COMPLEX } mb_dtype_class;

typedef enum mb_dtype {
#define MB_DTYPE(id, name, bytes, cls) MB_##id,
    MB_DTYPES(MB_DTYPE)
#undef MB_DTYPE
        MB_DTYPE_COUNT
} mb_dtype;

/* Sets of element types, for operator descriptors: MB_BIT(MB_F32) | MB_BIT(MB_U16). */
#define MB_BIT(dtype) (1u << (dtype))
#define MB_ANY_DTYPE ((1u << MB_DTYPE_COUNT) - 1u)
#define MB_REAL_DTYPES                                                                             \
    (MB_BIT(MB_U8) | MB_BIT(MB_U16) | MB_BIT(MB_I32) | MB_BIT(MB_F16) | MB_BIT(MB_F32) |           \
     MB_BIT(MB_F64))

const char *mb_dtype_name(mb_dtype dtype);
size_t mb_dtype_bytes(mb_dtype dtype);
mb_dtype_class mb_dtype_kind(mb_dtype dtype);
/* "f32" and the common aliases "float32", "uint16", "complex64", ... False when the name is
** unknown. */
bool mb_dtype_parse(const char *name, mb_dtype *out);

/* IEEE binary16, round to nearest even; NaN and infinities kept. */
uint16_t mb_half_from_float(float value);
float mb_half_to_float(uint16_t half);

/* Reads or writes one element as double (the real part of a complex one; imag 0 on writing).
** Writing to an integer rounds to nearest (ties to even) and clamps; NaN becomes 0. */
double mb_element_get(mb_dtype dtype, const void *element, double *imag);
void mb_element_set(mb_dtype dtype, void *element, double real, double imag);

#endif
