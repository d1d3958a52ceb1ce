/* Copies rows within the GPU's memory. Rows without gaps are copied as one range. Rows with gaps
 * are copied by one CUDA call if they begin at most cudaDevAttrMaxPitch bytes (2 GiB) apart;
 * otherwise by one call for each row. */
#include "cuda.h"

static size_t largest_pitch(void)
{
    static size_t cached;
    int device = 0, pitch = 0;
    if (cached) return cached;
    CUDA_CALL(cudaGetDevice(&device));
    CUDA_CALL(cudaDeviceGetAttribute(&pitch, cudaDevAttrMaxPitch, device));
    return cached = (size_t)pitch;
}

static void copy_contiguous(cudaStream_t stream, void *to, const void *from, size_t bytes)
{
    CUDA_CALL(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
}

void cuda_copy_rows(cudaStream_t stream, CudaRows to, CudaRows from, size_t bytes, size_t rows)
{
    if (bytes == 0 || rows == 0) return;
    if (rows == 1 || (to.pitch == bytes && from.pitch == bytes)) {
        copy_contiguous(stream, to.first, from.first, bytes * rows);
    } else if (to.pitch > largest_pitch() || from.pitch > largest_pitch()) {
        for (size_t i = 0; i < rows; ++i)
            copy_contiguous(stream, to.first + i * to.pitch, from.first + i * from.pitch, bytes);
    } else {
        CUDA_CALL(cudaMemcpy2DAsync(to.first, to.pitch, from.first, from.pitch, bytes, rows,
                                    cudaMemcpyDeviceToDevice, stream));
    }
}
