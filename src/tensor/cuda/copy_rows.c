/* Copies rows within the GPU's memory. CUDA copies all rows in one call where they begin less than
 * cudaDevAttrMaxPitch (2 GiB) apart. Rows without gaps are one copy of any size, and the few rows
 * that lie further apart are copied one by one. */
#include "cuda.h"

static size_t largest_pitch(void)
{
    static size_t known;
    int device = 0, pitch = 0;
    if (known) return known;
    CUDA_CALL(cudaGetDevice(&device));
    CUDA_CALL(cudaDeviceGetAttribute(&pitch, cudaDevAttrMaxPitch, device));
    return known = (size_t)pitch;
}

static void copy_run(cudaStream_t stream, void *to, const void *from, size_t bytes)
{
    CUDA_CALL(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
}

void cuda_copy_rows(cudaStream_t stream, CudaRows to, CudaRows from, size_t bytes, size_t rows)
{
    if (bytes == 0 || rows == 0) return;
    if (rows == 1 || (to.pitch == bytes && from.pitch == bytes)) {
        copy_run(stream, to.at, from.at, bytes * rows);
    } else if (to.pitch > largest_pitch() || from.pitch > largest_pitch()) {
        for (size_t i = 0; i < rows; ++i)
            copy_run(stream, to.at + i * to.pitch, from.at + i * from.pitch, bytes);
    } else {
        CUDA_CALL(cudaMemcpy2DAsync(to.at, to.pitch, from.at, from.pitch, bytes, rows,
                                    cudaMemcpyDeviceToDevice, stream));
    }
}
