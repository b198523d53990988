/*
** cuFFT, loaded at run time: the plug-in does not link it, so it loads without cuFFT and says what
** to install only when a transform is requested. Automatic allocation is off; the work area of
** every execution is a scratch slot of the pool. Plans run on the device's compute stream. Threads:
** plans are made and used under the runtime's device lock; loading happens once.
*/
#include "backend/cuda_device.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The few names of cufft.h that are used. Its binary interface is the same from version 10 to
** 12. */
typedef int fft_handle;
enum {
    KIND_R2C = 0x2a,
    KIND_C2R = 0x2c,
    KIND_C2C = 0x29,
    DIRECTION_FORWARD = -1,
    DIRECTION_INVERSE = 1
};

static struct {
    void *library;
    int (*create)(fft_handle *);
    int (*destroy)(fft_handle);
    int (*auto_allocation)(fft_handle, int);
    int (*make)(fft_handle, int, long long *, long long *, long long, long long, long long *,
                long long, long long, int, long long, size_t *);
    int (*set_stream)(fft_handle, cudaStream_t);
    int (*set_work)(fft_handle, void *);
    int (*c2c)(fft_handle, void *, void *, int);
    int (*r2c)(fft_handle, void *, void *);
    int (*c2r)(fft_handle, void *, void *);
    int (*version)(int *);
} fft;
static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

static const char *const versions[] = {"libcufft.so.12", "libcufft.so.11", "libcufft.so.10"};

static void *open_library(void)
{
    const char *file = getenv("MOONBEAM_CUFFT");
    if (file && *file)
        return dlopen(file, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        void *library = dlopen(versions[i], RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    const char *roots[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
    static const char *const folders[] = {"lib64", "lib", "targets/x86_64-linux/lib",
                                          "targets/sbsa-linux/lib"};
    for (size_t r = 0; r < sizeof roots / sizeof *roots; r++)
        for (size_t f = 0; roots[r] && *roots[r] && f < sizeof folders / sizeof *folders; f++)
            for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
                char path[1024];
                snprintf(path, sizeof path, "%s/%s/%s", roots[r], folders[f], versions[i]);
                void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
                if (library)
                    return library;
            }
    return NULL;
}

static mb_status load(void)
{
    mb_status status = MB_STATUS_OK;
    pthread_mutex_lock(&load_lock);
    if (!fft.library) {
        void *library = open_library();
        const struct {
            const char *name;
            void **function;
        } wanted[] = {
            {"cufftCreate", (void **)&fft.create},
            {"cufftDestroy", (void **)&fft.destroy},
            {"cufftSetAutoAllocation", (void **)&fft.auto_allocation},
            {"cufftMakePlanMany64", (void **)&fft.make},
            {"cufftSetStream", (void **)&fft.set_stream},
            {"cufftSetWorkArea", (void **)&fft.set_work},
            {"cufftExecC2C", (void **)&fft.c2c},
            {"cufftExecR2C", (void **)&fft.r2c},
            {"cufftExecC2R", (void **)&fft.c2r},
            {"cufftGetVersion", (void **)&fft.version},
        };
        if (!library) {
            status = mb_cuda_core->fail(MB_STATUS_UNSUPPORTED, NULL,
                                        "cuFFT was not found (libcufft.so.12 or libcufft.so.11): "
                                        "install the CUDA toolkit's cuFFT (packages "
                                        "libcufft-13-0 or libcufft-12-*), or set CUDA_HOME to a "
                                        "toolkit or MOONBEAM_CUFFT to the library's path");
        } else {
            for (size_t i = 0; i < sizeof wanted / sizeof *wanted && status == MB_STATUS_OK; i++) {
                *wanted[i].function = dlsym(library, wanted[i].name);
                if (!*wanted[i].function)
                    status = mb_cuda_core->fail(MB_STATUS_UNSUPPORTED, NULL,
                                                "the cuFFT library has no %s", wanted[i].name);
            }
            if (status == MB_STATUS_OK)
                fft.library = library;
            else
                dlclose(library);
        }
    }
    pthread_mutex_unlock(&load_lock);
    return status;
}

static mb_status fft_status(int result, const char *what)
{
    static const char *const names[] = {
        "success",        "invalid plan",     "allocation failed", "invalid type", "invalid value",
        "internal error", "execution failed", "setup failed",      "invalid size", "unaligned data",
    };
    if (result == 0)
        return MB_STATUS_OK;
    const char *name = result > 0 && result < (int)(sizeof names / sizeof *names) ? names[result]
                                                                                  : "unknown error";
    /* cuFFT's own codes do not say whether the device is lost; CUDA's last error does. */
    cudaError_t cuda = cudaGetLastError();
    mb_status code = !mb_cuda_harmless(cuda) ? MB_STATUS_DEVICE
                     : result == 2           ? MB_STATUS_MEMORY
                     : result == 8           ? MB_STATUS_UNSUPPORTED
                                             : MB_STATUS_INTERNAL;
    return mb_cuda_core->fail(code, NULL, "cuFFT %s failed: %s (%d)%s%s", what, name, result,
                              cuda == cudaSuccess ? "" : "; CUDA says: ",
                              cuda == cudaSuccess ? "" : cudaGetErrorString(cuda));
}

static int kind_of(mb_fft_kind kind)
{
    return kind == MB_FFT_R2C ? KIND_R2C : kind == MB_FFT_C2R ? KIND_C2R : KIND_C2C;
}

mb_status mb_cuda_fft_create(void *self, const mb_fft_desc *desc, void **plan, uint64_t *work_bytes,
                             uint64_t *library_bytes)
{
    mb_cuda_device *device = (mb_cuda_device *)self;
    MB_TRY(mb_cuda_select(device));
    MB_TRY(load());
    fft_handle *handle = (fft_handle *)calloc(1, sizeof *handle);
    if (!handle)
        return mb_cuda_core->fail(MB_STATUS_MEMORY, NULL, "out of host memory for an FFT plan");
    size_t before = 0, after = 0, total, work = 0;
    long long dims[3], in_embed[3], out_embed[3];
    for (int i = 0; i < desc->rank; i++)
        dims[i] = in_embed[i] = out_embed[i] = desc->dims[i];
    in_embed[desc->rank - 1] = desc->in_pitch;
    out_embed[desc->rank - 1] = desc->out_pitch;
    cudaMemGetInfo(&before, &total);
    mb_status status = fft_status(fft.create(handle), "plan creation");
    bool created = status == MB_STATUS_OK;
    if (status == MB_STATUS_OK)
        status = fft_status(fft.auto_allocation(*handle, 0), "switching automatic allocation off");
    if (status == MB_STATUS_OK)
        status = fft_status(fft.make(*handle, desc->rank, dims, in_embed, 1, desc->in_distance,
                                     out_embed, 1, desc->out_distance, kind_of(desc->kind),
                                     desc->batch, &work),
                            "planning");
    if (status == MB_STATUS_OK)
        status = fft_status(fft.set_stream(*handle, device->stream), "choice of the stream");
    if (status != MB_STATUS_OK) {
        if (created)
            fft.destroy(*handle);
        free(handle);
        return status;
    }
    cudaMemGetInfo(&after, &total);
    *plan = handle;
    *work_bytes = work;
    *library_bytes = before > after ? before - after : 0;
    return MB_STATUS_OK;
}

void mb_cuda_fft_destroy(void *self, void *plan)
{
    if (!plan)
        return;
    if (mb_cuda_reach((const mb_cuda_device *)self))
        fft.destroy(*(fft_handle *)plan);
    mb_cuda_freed();
    free(plan);
}

static mb_status execute(const fft_handle handle, mb_fft_kind kind, void *in, void *out)
{
    switch (kind) {
    case MB_FFT_R2C: return fft_status(fft.r2c(handle, in, out), "real to complex transform");
    case MB_FFT_C2R: return fft_status(fft.c2r(handle, in, out), "complex to real transform");
    default:
        return fft_status(
            fft.c2c(handle, in, out,
                    kind == MB_FFT_C2C_FORWARD ? DIRECTION_FORWARD : DIRECTION_INVERSE),
            "complex transform");
    }
}

mb_status mb_cuda_fft_exec(void *self, void *plan, const mb_fft_desc *desc, void *in, void *out,
                           void *work)
{
    const mb_cuda_device *device = (const mb_cuda_device *)self;
    const fft_handle handle = *(const fft_handle *)plan;
    /* cuFFT also needs complex alignment on the real side, and reports a misaligned array as the
    ** loss of the device. */
    if (((uintptr_t)in | (uintptr_t)out) % (2 * sizeof(float)))
        return mb_cuda_core->fail(
            MB_STATUS_SHAPE, NULL,
            "the array is a view that begins at an odd element, which a transform on cuda:%d "
            "cannot read or write; take a:copy()",
            device->index);
    MB_TRY(mb_cuda_select(device));
    if (work)
        MB_TRY(fft_status(fft.set_work(handle, work), "work area"));
    return execute(handle, desc->kind, in, out);
}

mb_status mb_cuda_transform(const mb_op_call *call, int fft_number, void *in, void *out,
                            int work_slot)
{
    const mb_fft_plan *plan = call->ffts[fft_number];
    return mb_cuda_fft_exec(call->device->self, plan->handle, &plan->desc, in, out,
                            call->slots[work_slot]);
}

void mb_cuda_fft_library(void *self, char *text, size_t bytes)
{
    int version = 0;
    (void)self;
    if (load() == MB_STATUS_OK && fft.version(&version) == 0)
        snprintf(text, bytes, "cuFFT %d.%d.%d", version / 1000, version / 100 % 10, version % 100);
    else
        snprintf(text, bytes, "cuFFT, not found");
}
