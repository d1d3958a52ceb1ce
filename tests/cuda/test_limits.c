/* Checks that the emulated GPU refuses what a GPU refuses: grids and blocks that are too large,
 * shared memory that was not requested, misaligned vectors, rows too far apart for one copy. */
#include "harness.h"

#include <cuda_runtime_api.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

/* Kernels in tests/cuda/emulate/limits.cc. */
cudaError_t limits_launch(cudaStream_t stream, struct dim3 grid, struct dim3 threads,
                          size_t shared_bytes);
cudaError_t limits_ask(int shared_bytes);
cudaError_t limits_read_four(cudaStream_t stream, float *out, const float *from);

static cudaStream_t stream;

static cudaError_t launch(struct dim3 grid, struct dim3 threads, size_t shared_bytes)
{
    cudaError_t error = limits_launch(stream, grid, threads, shared_bytes);
    CU_ASSERT_EQUAL(cudaGetLastError(), cudaSuccess);
    CU_ASSERT_EQUAL(cudaStreamSynchronize(stream), cudaSuccess);
    return error;
}

static void test_grids(void)
{
    const struct dim3 one = {1, 1, 1};
    const struct dim3 taken[] = {{1, 1, 1}, {1, 65535, 1}, {1, 1, 65535}, {70000, 1, 1}};
    const struct dim3 refused[] = {{1, 65536, 1}, {1, 1, 65536}, {0x80000000u, 1, 1},
                                   {0, 1, 1},     {1, 0, 1},     {1, 1, 0}};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; ++i)
        CU_ASSERT_EQUAL(launch(taken[i], one, 0), cudaSuccess);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i)
        CU_ASSERT_EQUAL(launch(refused[i], one, 0), cudaErrorInvalidConfiguration);
}

static void test_blocks(void)
{
    const struct dim3 one = {1, 1, 1};
    const struct dim3 taken[] = {{1024, 1, 1}, {1, 1024, 1}, {16, 1, 64}, {8, 8, 16}};
    const struct dim3 refused[] = {{1025, 1, 1}, {1, 1025, 1}, {1, 1, 65}, {32, 33, 1},
                                   {0, 1, 1},    {1, 0, 1},    {1, 1, 0},  {0x10000, 0x10000, 1}};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; ++i)
        CU_ASSERT_EQUAL(launch(one, taken[i], 0), cudaSuccess);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i)
        CU_ASSERT_EQUAL(launch(one, refused[i], 0), cudaErrorInvalidConfiguration);
}

static void test_shared_memory(void)
{
    const struct dim3 one = {1, 1, 1};
    CU_ASSERT_EQUAL(launch(one, one, 48 << 10), cudaSuccess);
    CU_ASSERT_EQUAL(launch(one, one, (48 << 10) + 1), cudaErrorInvalidValue);
    CU_ASSERT_EQUAL(limits_ask((227 << 10) + 1), cudaErrorInvalidValue);
    CU_ASSERT_EQUAL(launch(one, one, 227 << 10), cudaErrorInvalidValue);
    CU_ASSERT_EQUAL(limits_ask(227 << 10), cudaSuccess);
    CU_ASSERT_EQUAL(launch(one, one, 227 << 10), cudaSuccess);
    CU_ASSERT_EQUAL(launch(one, one, (227 << 10) + 1), cudaErrorInvalidValue);
}

/* Returns the wait status of a child process that reads four floats at byte `bytes` of a block of
 * memory. said: receives the child's standard error. */
static int read_at(size_t bytes, char *said, size_t room)
{
    int pipes[2], status = 0;
    size_t got = 0;
    CU_ASSERT_EQUAL_FATAL(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        void *from = NULL, *to = NULL;
        dup2(pipes[1], 2);
        if (cudaMalloc(&from, 64) != cudaSuccess || cudaMalloc(&to, 64) != cudaSuccess) _exit(2);
        limits_read_four(stream, to, (const float *)((const char *)from + bytes));
        _exit(cudaStreamSynchronize(stream) == cudaSuccess ? 0 : 3);
    }
    close(pipes[1]);
    for (ssize_t n; (n = read(pipes[0], said + got, room - 1 - got)) > 0;) got += (size_t)n;
    said[got] = 0;
    close(pipes[0]);
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    return status;
}

static void test_alignment(void)
{
    char said[512];
    for (size_t bytes = 0; bytes <= 16; bytes += 4) {
        int status = read_at(bytes, said, sizeof said);
        bool aligned = bytes % 16 == 0;
        CU_ASSERT_EQUAL(aligned, WIFEXITED(status) && WEXITSTATUS(status) == 0);
        CU_ASSERT_EQUAL(!aligned, WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        CU_ASSERT_EQUAL(!aligned, strstr(said, "a misaligned address") != NULL);
        CU_ASSERT_EQUAL(!aligned, strstr(said, "limits.cc") != NULL);
    }
}

static void test_pitch(void)
{
    struct cudaDeviceProp properties;
    const size_t most = 0x7fffffff;
    void *from = NULL, *to = NULL;
    int attribute = 0;
    CU_ASSERT_EQUAL_FATAL(cudaMalloc(&from, 256), cudaSuccess);
    CU_ASSERT_EQUAL_FATAL(cudaMalloc(&to, 256), cudaSuccess);
    CU_ASSERT_EQUAL(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    CU_ASSERT_EQUAL(cudaDeviceGetAttribute(&attribute, cudaDevAttrMaxPitch, 0), cudaSuccess);
    CU_ASSERT_EQUAL(properties.memPitch, most);
    CU_ASSERT_EQUAL(attribute, most);
#define COPY(to_pitch, from_pitch)                                                                 \
    cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, 16, 1, cudaMemcpyDeviceToDevice, stream)
    CU_ASSERT_EQUAL(COPY(16, 64), cudaSuccess);
    CU_ASSERT_EQUAL(COPY(most, most), cudaSuccess);
    CU_ASSERT_EQUAL(COPY(most + 1, 16), cudaErrorInvalidPitchValue);
    CU_ASSERT_EQUAL(COPY(16, most + 1), cudaErrorInvalidPitchValue);
    CU_ASSERT_EQUAL(COPY(15, 16), cudaErrorInvalidPitchValue);
    CU_ASSERT_EQUAL(COPY(16, 15), cudaErrorInvalidPitchValue);
#undef COPY
    CU_ASSERT_EQUAL(cudaStreamSynchronize(stream), cudaSuccess);
    CU_ASSERT_EQUAL(cudaFree(to), cudaSuccess);
    CU_ASSERT_EQUAL(cudaFree(from), cudaSuccess);
}

int main(void)
{
    static const HarnessTest tests[] = {{"grids", test_grids},
                                        {"blocks", test_blocks},
                                        {"shared memory", test_shared_memory},
                                        {"alignment", test_alignment},
                                        {"pitch", test_pitch}};
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return 1;
    int rc = harness_run("limits", tests, sizeof tests / sizeof *tests, 0, NULL);
    return cudaStreamDestroy(stream) == cudaSuccess ? rc : 1;
}
