/* Passes over channels-last images (samples, pixels, channels) that read or compute numbers for
 * each channel of each sample. They work like those of columns.cuh; the rows are the pixels of a
 * sample. The third dimension of a grid has the samples; a block computes samples blockIdx.z,
 * blockIdx.z + gridDim.z, ... */
#ifndef WEFT_SAMPLES_CUH
#define WEFT_SAMPLES_CUH

#include "columns.cuh"

/* the limit of a grid's third dimension */
enum { SAMPLE_BLOCKS = 65535 };

struct SampleShape {
    DType type;
    int64_t samples, pixels, channels;
};

static inline unsigned sample_blocks(int64_t samples)
{
    return (unsigned)(samples < SAMPLE_BLOCKS ? samples : (int64_t)SAMPLE_BLOCKS);
}

/* Number of parts of a sum over a sample's pixels, which does not depend on the other samples. */
static inline int64_t sample_parts(const SampleShape &s)
{
    return cuda_sum_parts(s.type, s.pixels, s.channels);
}

/* Launch shape of sum_part over the pixels of each sample. */
static inline LaunchShape grid_of_sums(const SampleShape &s, int elements)
{
    LaunchShape on = grid_over_parts(s.channels, elements, sample_parts(s));
    on.grid.z = sample_blocks(s.samples);
    return on;
}

/* Launch shape of each_row over the pixels of each sample: the more samples, the fewer blocks for
 * each. */
static inline LaunchShape grid_of_pass(const SampleShape &s, int elements, int batch)
{
    LaunchShape on = grid_over_rows(s.pixels, s.channels, elements, batch);
    const int64_t most = MAP_BLOCKS / (on.grid.x * s.samples);
    if (on.grid.y > most) on.grid.y = most > 1 ? (unsigned)most : 1;
    on.grid.z = sample_blocks(s.samples);
    return on;
}

/* Address of channel c of the first pixel of a sample. */
template <class T>
static __device__ __forceinline__ T *sample_at(const void *images, int64_t sample, int64_t pixels,
                                               int64_t channels, int64_t c)
{
    return (T *)images + sample * pixels * channels + c;
}

#endif
