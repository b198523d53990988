/*
** Devices that are not here, for planning: "planned:h200". Each is a record of a real device: its
** facts and the needs of its FFT library. A record is one file, record_<name>.c, which
** scripts/record_fft_sizes.lua writes on a machine with that device; premake5.lua lists the
** records.
**
** A planned device has the allocator and the operators' plans of the real one, so dry runs,
** estimates and everything built on them give the real device's figures. It has no memory: calls
** that need memory are refused.
*/
#ifndef MB_DEVICE_PLANNED_PLANNED_BACKEND_H
#define MB_DEVICE_PLANNED_PLANNED_BACKEND_H

#include "device/backend.h"
#include "device/fft_record.h"

typedef struct mb_device_record {
    const char *name; /* "h200", of "planned:h200" */
    mb_device_facts facts;
    uint64_t free_bytes; /* as an idle device reports */
    mb_fft_record fft;
} mb_device_record;

/* Stands for "cuda" wherever the kind of a device is asked for. */
extern const mb_backend mb_planned_backend;

int mb_device_record_count(void);
const mb_device_record *mb_device_record_at(int index);
/* The index of the record with that name, or -1. */
int mb_device_record_find(const char *name);
/* The record of FFT work areas and times for the device: its own record, else that of a GPU of the
** same name, else the first. NULL for the host. */
const mb_fft_record *mb_device_fft_record(const mb_device *device);

#endif
