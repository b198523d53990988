/*
** The product with a transfer function in planes (op_otf.h), on the host.
*/
#ifndef MB_OPS_OTF_PLANES_H
#define MB_OPS_OTF_PLANES_H

#include "device/device.h"

/* a, nz planes of so many complex numbers each, times the transfer function of `planes` planes of
** that many, or its conjugate, times scale. At most MB_OTF_MOST_PLANES planes, an odd number. */
void mb_otf_planes_multiply_host(mb_device *device, float *a, const float *otf, int planes,
                                 int64_t nz, int64_t columns, double scale, bool conj);

#endif
