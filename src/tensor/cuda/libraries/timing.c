/* Times algorithms of a library. Each algorithm is run once, so that it is loaded, and then in
 * ROUNDS rounds of RUNS runs. The time of its fastest round counts. */
#include "timing.h"

enum { ROUNDS = 3, RUNS = 10, BUFFER_ALIGN = 256 };
/* value of every byte of the buffers; in fp32, bf16 and fp16 the numbers are then small and
 * positive */
enum { FILL_BYTE = 0x3c };

AlgorithmRecord *cuda_algorithm_record(const CudaState *state)
{
    return state->options ? state->options->record : NULL;
}

bool cuda_times_algorithms(const CudaState *state)
{
    return cuda_algorithm_record(state) && state->options->times_algorithms && cuda_has_gpu(state);
}

static size_t round_to_alignment(size_t bytes)
{
    return (bytes + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN;
}

bool timed_memory_init(TimedMemory *memory, const CudaState *state, const size_t *bytes, int count)
{
    size_t all = 0, offset = 0;
    *memory = (TimedMemory){0};
    if (count > TIMED_BUFFERS)
        die("timing an operation needs %d buffers; at most %d are possible", count, TIMED_BUFFERS);
    for (int i = 0; i < count; ++i) all += round_to_alignment(bytes[i]);
    if (all == 0) return true;
    cudaError_t error = cudaMalloc(&memory->allocation, all);
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return false;
    }
    cuda_check(error, "cudaMalloc");
    CUDA_CALL(cudaMemsetAsync(memory->allocation, FILL_BYTE, all, state->compute.handle));
    for (int i = 0; i < count; offset += round_to_alignment(bytes[i++]))
        memory->buffer[i] = (char *)memory->allocation + offset;
    return true;
}

void timed_memory_fini(TimedMemory *memory)
{
    if (memory->allocation) CUDA_CALL(cudaFree(memory->allocation));
    *memory = (TimedMemory){0};
}

/* Returns the milliseconds of candidate i's fastest round, or a negative number if the library
 * refuses the candidate. from, to: events that are recorded at the start and the end of a round. */
static double time_candidate(CudaState *state, cudaEvent_t from, cudaEvent_t to,
                             bool (*run)(void *user, int i), void *user, int i)
{
    cudaStream_t stream = state->compute.handle;
    double best = -1;
    if (!run(user, i)) return -1;
    for (int round = 0; round < ROUNDS; ++round) {
        float ms = 0;
        CUDA_CALL(cudaEventRecord(from, stream));
        for (int k = 0; k < RUNS; ++k)
            if (!run(user, i)) return -1;
        CUDA_CALL(cudaEventRecord(to, stream));
        CUDA_CALL(cudaEventSynchronize(to));
        CUDA_CALL(cudaEventElapsedTime(&ms, from, to));
        if (best < 0 || (double)ms < best) best = (double)ms;
    }
    return best;
}

int find_fastest(CudaState *state, int count, bool (*run)(void *user, int i), void *user)
{
    cudaEvent_t from, to;
    int fastest = 0;
    if (count < 2) return 0;
    CUDA_CALL(cudaEventCreateWithFlags(&from, cudaEventDefault));
    CUDA_CALL(cudaEventCreateWithFlags(&to, cudaEventDefault));
    double first = time_candidate(state, from, to, run, user, 0), best = first;
    for (int i = 1; i < count; ++i) {
        double ms = time_candidate(state, from, to, run, user, i);
        if (ms < 0 || (best >= 0 && ms >= best)) continue;
        if (first >= 0 && ms > (1 - TIMED_GAIN) * first) continue;
        best = ms;
        fastest = i;
    }
    CUDA_CALL(cudaStreamSynchronize(state->compute.handle));
    CUDA_CALL(cudaEventDestroy(to));
    CUDA_CALL(cudaEventDestroy(from));
    return fastest;
}
