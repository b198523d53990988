/*
** Element types: names, sizes, half precision, and single-element access.
*/
#include "core/dtype.h"
#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
    mb_dtype_class kind;
} dtypes[MB_DTYPE_COUNT] = {
#define MB_DTYPE(id, name, bytes, kind) [MB_##id] = {name, bytes, kind},
    MB_DTYPES(MB_DTYPE)
#undef MB_DTYPE
};

static const struct {
    const char *alias;
    mb_dtype dtype;
} aliases[] = {
    {"uint8", MB_U8},   {"uint16", MB_U16},    {"int32", MB_I32},       {"float16", MB_F16},
    {"half", MB_F16},   {"float32", MB_F32},   {"float", MB_F32},       {"float64", MB_F64},
    {"double", MB_F64}, {"complex64", MB_C64}, {"complex128", MB_C128},
};

const char *mb_dtype_name(mb_dtype dtype)
{
    return (unsigned)dtype < MB_DTYPE_COUNT ? dtypes[dtype].name : "?";
}

size_t mb_dtype_bytes(mb_dtype dtype)
{
    return dtypes[dtype].bytes;
}

mb_dtype_class mb_dtype_kind(mb_dtype dtype)
{
    return dtypes[dtype].kind;
}

bool mb_dtype_parse(const char *name, mb_dtype *out)
{
    for (int i = 0; i < MB_DTYPE_COUNT; i++)
        if (!strcmp(name, dtypes[i].name)) {
            *out = (mb_dtype)i;
            return true;
        }
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (!strcmp(name, aliases[i].alias)) {
            *out = aliases[i].dtype;
            return true;
        }
    return false;
}

uint16_t mb_half_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)((bits >> 16) & 0x8000u);
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) /* NaN stays NaN, quiet */
        return (uint16_t)(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* below 2^-14: subnormal half */
        if (magnitude < 0x33000000u)
            return sign; /* below half the smallest subnormal */
        int shift = 126 - (int)(magnitude >> 23);
        uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
        uint32_t half = mantissa >> shift;
        uint32_t rest = mantissa & ((1u << shift) - 1u);
        uint32_t tie = 1u << (shift - 1);
        if (rest > tie || (rest == tie && (half & 1u)))
            half++;
        return (uint16_t)(sign | half);
    }
    uint32_t half = (magnitude - 0x38000000u) >> 13;
    uint32_t rest = magnitude & 0x1fffu;
    if (rest > 0x1000u || (rest == 0x1000u && (half & 1u)))
        half++;
    return (uint16_t)(sign | half);
}

float mb_half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = (half >> 10) & 0x1fu;
    uint32_t mantissa = half & 0x3ffu;
    uint32_t bits;
    if (exponent == 31) {
        bits = sign | 0x7f800000u | (mantissa << 13);
    } else if (exponent) {
        bits = sign | ((exponent + 112) << 23) | (mantissa << 13);
    } else if (mantissa) {
        exponent = 113;
        while (!(mantissa & 0x400u)) {
            mantissa <<= 1;
            exponent--;
        }
        bits = sign | (exponent << 23) | ((mantissa & 0x3ffu) << 13);
    } else {
        bits = sign;
    }
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

double mb_element_get(mb_dtype dtype, const void *element, double *imag)
{
    if (imag)
        *imag = 0;
    switch (dtype) {
    case MB_U8: return *(const uint8_t *)element;
    case MB_U16: return *(const uint16_t *)element;
    case MB_I32: return *(const int32_t *)element;
    case MB_F16: return (double)mb_half_to_float(*(const uint16_t *)element);
    case MB_F32: return (double)*(const float *)element;
    case MB_F64: return *(const double *)element;
    case MB_C64:
        if (imag)
            *imag = (double)((const float *)element)[1];
        return (double)((const float *)element)[0];
    case MB_C128:
        if (imag)
            *imag = ((const double *)element)[1];
        return ((const double *)element)[0];
    default: return 0;
    }
}

/* Nearest integer in [low, high]; NaN becomes 0. */
static double clamp_round(double value, double low, double high)
{
    if (isnan(value))
        return 0;
    value = nearbyint(value);
    return value < low ? low : value > high ? high : value;
}

void mb_element_set(mb_dtype dtype, void *element, double real, double imag)
{
    switch (dtype) {
    case MB_U8: *(uint8_t *)element = (uint8_t)clamp_round(real, 0, 255); break;
    case MB_U16: *(uint16_t *)element = (uint16_t)clamp_round(real, 0, 65535); break;
    case MB_I32: *(int32_t *)element = (int32_t)clamp_round(real, INT32_MIN, INT32_MAX); break;
    case MB_F16: *(uint16_t *)element = mb_half_from_float((float)real); break;
    case MB_F32: *(float *)element = (float)real; break;
    case MB_F64: *(double *)element = real; break;
    case MB_C64:
        ((float *)element)[0] = (float)real;
        ((float *)element)[1] = (float)imag;
        break;
    case MB_C128:
        ((double *)element)[0] = real;
        ((double *)element)[1] = imag;
        break;
    default: break;
    }
}
