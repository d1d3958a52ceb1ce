/* Passes over channels-last images (samples, pixels, channels). These passes read or compute
 * numbers for each channel of each sample. They work as the passes of columns.cuh do, with the
 * pixels of a sample as rows. The third dimension of a grid is for the samples: a block computes
 * samples blockIdx.z, blockIdx.z + gridDim.z, ... */
#ifndef WEFT_SAMPLES_CUH
#define WEFT_SAMPLES_CUH

#include "columns.cuh"

/* largest third dimension of a grid */
enum { SAMPLE_BLOCKS = 65535 };

struct SampleShape {
    DType type;
    int64_t samples, pixels, channels;
};

static inline unsigned sample_blocks(int64_t samples)
{
    return (unsigned)(samples < SAMPLE_BLOCKS ? samples : (int64_t)SAMPLE_BLOCKS);
}

/* Returns the number of parts of a sum over the pixels of a sample. It does not depend on the
 * number of samples. */
static inline int64_t sample_parts(const SampleShape &s)
{
    return cuda_sum_parts(s.type, s.pixels, s.channels);
}

/* Returns the launch shape of sum_part over the pixels of each sample. elements: channels of a
 * thread. */
static inline LaunchShape grid_of_sums(const SampleShape &s, int elements)
{
    LaunchShape on = grid_over_parts(s.channels, elements, sample_parts(s));
    on.grid.z = sample_blocks(s.samples);
    return on;
}

/* Returns the launch shape of each_row over the pixels of each sample. elements: channels of a
 * thread; batch: pixels of a batch. The more samples there are, the fewer blocks each sample
 * has. */
static inline LaunchShape grid_of_pass(const SampleShape &s, int elements, int batch)
{
    LaunchShape on = grid_over_rows(s.pixels, s.channels, elements, batch);
    const int64_t most = MAP_BLOCKS / (on.grid.x * s.samples);
    if (on.grid.y > most) on.grid.y = most > 1 ? (unsigned)most : 1;
    on.grid.z = sample_blocks(s.samples);
    return on;
}

/* Returns the address of channel c of the first pixel of a sample. */
template <class T>
static __device__ __forceinline__ T *sample_at(const void *images, int64_t sample, int64_t pixels,
                                               int64_t channels, int64_t c)
{
    return (T *)images + sample * pixels * channels + c;
}

#endif
