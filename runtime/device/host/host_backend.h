#ifndef MB_DEVICE_HOST_HOST_BACKEND_H
#define MB_DEVICE_HOST_HOST_BACKEND_H

#include "device/backend.h"

/* The backend that is always there. Its devices are "host" and "host:1" to "host:7": the same
** processors, and the same memory in pools, caches and accounts of their own. Programs for several
** devices are tried with them. The host computes within the launch, so that they show errors of
** bookkeeping, not of concurrency. */
extern const mb_backend mb_host_backend;

#define MB_HOST_DEVICES 8

/* host_fft.c */
mb_status mb_host_fft_create(void *self, const mb_fft_desc *desc, void **plan, uint64_t *work_bytes,
                             uint64_t *library_bytes);
void mb_host_fft_destroy(void *self, void *plan);
mb_status mb_host_fft_exec(void *self, void *plan, const mb_fft_desc *desc, void *in, void *out,
                           void *work);
/* "fftw-3.3.10-sse2-avx" */
const char *mb_host_fft_version(void);

#endif
