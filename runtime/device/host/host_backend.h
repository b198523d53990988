#ifndef MB_DEVICE_HOST_HOST_BACKEND_H
#define MB_DEVICE_HOST_HOST_BACKEND_H

#include "device/backend.h"

/* The backend that is always there. */
extern const mb_backend mb_host_backend;

/* host_fft.c */
mb_status mb_host_fft_create(void *self, const mb_fft_desc *desc, void **plan, uint64_t *work_bytes,
                             uint64_t *library_bytes);
void mb_host_fft_destroy(void *self, void *plan);
mb_status mb_host_fft_exec(void *self, void *plan, const mb_fft_desc *desc, void *in, void *out,
                           void *work);
/* "fftw-3.3.10-sse2-avx" */
const char *mb_host_fft_version(void);

#endif
