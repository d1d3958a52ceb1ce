/* The fibers that run kernels (kernel.h), the GPU's memory and its properties; streams are in
 * stream.cc. New memory is filled with NaNs. Only queued work, such as kernels and copies, can
 * access the GPU's memory. Host code that accesses it gets a SIGSEGV, and so does a kernel that
 * accesses an address outside of the pages of all allocated blocks. A kernel that reads host memory
 * is not detected. */
#include "kernel.h"
#include "queue.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <random>
#include <sys/mman.h>
#include <ucontext.h>
#include <utility>
#include <vector>

namespace emulate
{
Indices thread, block, threads, blocks;

namespace
{
/* The size is not a power of two; otherwise the stacks of all threads would use the same sets of
 * the processor's caches. */
const size_t STACK_BYTES = (128 << 10) + 17 * 64;

/* alive: number of threads that have not ended; waiting: number of threads at the barrier; round:
 * number of times that the barrier has been completed */
struct Barrier {
    unsigned alive, waiting, round;
};
/* Context of __builtin_setjmp, by which fibers are switched. A switch takes a few instructions,
 * many fewer than with the C library's swapcontext. */
typedef void *Jump[5];
struct Fiber {
    Jump resume; /* point at which the fiber continues */
    const Barrier *barrier; /* the barrier at which the fiber waits; NULL: none */
    unsigned round;
    ucontext_t start;
    char *stack; /* NULL: not started yet; the next block uses the same fibers again */
    Indices indices; /* threadIdx of its thread */
    bool done;
};
Fiber fibers[BLOCK_THREADS];
Barrier block_state, warp_states[BLOCK_THREADS / WARP_LANES];
uint64_t exchanged[2][BLOCK_THREADS]; /* used in turn, so that no value is overwritten before it is read */
Jump scheduler;
unsigned running; /* index of the fiber that runs */
/* progressed: since the last check a thread has ended or a barrier was completed; launch_waited: a
 * thread of this launch has waited at a barrier; without_fiber: threads run without fibers */
bool progressed, launch_waited, without_fiber;
const std::function<void()> *thread_body;

void fiber_main();

/* ---- the GPU's memory ---- */

const size_t MEMORY_BYTES = size_t(4) << 30, PAGE_BYTES = 4096, HUGE_BYTES = 512 * PAGE_BYTES, ALIGN_BYTES = 256;

/* An allocated block. Its pages can be accessed only while a window is open (window_open); the
 * pages before and after them can never be accessed. The memory ends as close to the end of the
 * last page as its alignment allows. Writes to the rest of the pages are detected when the block is
 * released. */
struct Block {
    char *pages, *memory, *mapped;
    size_t pages_bytes, bytes, mapped_bytes;

    void protect(int how) const
    {
        mprotect(pages, pages_bytes, how);
    }
};
std::vector<Block> memory_blocks;
size_t allocated_bytes;
int windows; /* number of open windows */

size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

char *allocate(size_t bytes)
{
    size_t page = bytes < HUGE_BYTES ? PAGE_BYTES : HUGE_BYTES; /* large blocks use huge pages, so that fewer pages have to be protected */
    size_t room = round_up(bytes, ALIGN_BYTES), pages = round_up(room, page);
    size_t all_bytes = pages + 3 * page;
    if (room > MEMORY_BYTES - allocated_bytes) return nullptr;
    void *all = mmap(nullptr, all_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return nullptr;
    char *mapped = static_cast<char *>(all);
    char *first = reinterpret_cast<char *>(round_up(reinterpret_cast<uintptr_t>(all), page) + page);
    if (page == HUGE_BYTES) madvise(first, pages, MADV_HUGEPAGE);
    memory_blocks.push_back({first, first + pages - room, mapped, pages, bytes, all_bytes});
    allocated_bytes += room;
    window_open();
    memset(first, 0xff, pages);
    window_close();
    return memory_blocks.back().memory;
}

/* Ends the program if a byte from `first` to before `end`, outside of the block's memory, was
 * written. */
void check_unwritten(const Block &b, const char *first, const char *end)
{
    for (const char *p = first; p < end; ++p)
        if (*p != char(0xff)) {
            fprintf(stderr, "emulated GPU: a byte was written at %td of a block of %zu bytes\n",
                    p - b.memory, b.bytes);
            abort();
        }
}

/* Releases a block. Returns false if there is no such block. */
bool release_memory(void *memory)
{
    auto is = [memory](const Block &b) { return b.memory == memory; };
    auto b = std::find_if(memory_blocks.begin(), memory_blocks.end(), is);
    if (b == memory_blocks.end()) return false;
    b->protect(PROT_READ);
    check_unwritten(*b, b->pages, b->memory);
    check_unwritten(*b, b->memory + b->bytes, b->pages + b->pages_bytes);
    munmap(b->mapped, b->mapped_bytes);
    allocated_bytes -= round_up(b->bytes, ALIGN_BYTES);
    memory_blocks.erase(b);
    return true;
}

/* ---- blocks and threads ---- */

/* A permutation of 0 to count - 1 that begins with 0 and differs at each launch. A result that
 * depends on this order shows a race: its bits differ when the same work is done again. */
struct Order {
    unsigned count, stride;

    unsigned next(unsigned i) const
    {
        return i + stride < count ? i + stride : i + stride - count;
    }
};

Order new_order(unsigned count)
{
    static std::minstd_rand random;
    unsigned stride = 1 + unsigned(random()) % count;
    while (std::gcd(stride, count) != 1) ++stride;
    return {count, stride % count};
}
Order order; /* order of the threads in a block */

/* ---- dynamic shared memory, with the sizes of an H100 ---- */

const size_t SHARED_BYTES = 227 << 10, DEFAULT_SHARED_BYTES = 48 << 10;
std::map<const void *, size_t> requested_bytes; /* sizes set by cudaFuncSetAttribute, for each kernel */
char *shared;                         /* shared memory of the current launch */
cudaError_t last_error;               /* error of the last launch that was refused */

/* Prepares shared memory, filled with NaN, that ends at a page that cannot be written. */
void prepare_shared(size_t bytes)
{
    static char *end;
    if (!end) {
        size_t room = round_up(SHARED_BYTES, PAGE_BYTES);
        void *all = mmap(nullptr, room + PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (all == MAP_FAILED || mprotect(all, room, PROT_READ | PROT_WRITE) != 0) abort();
        end = static_cast<char *>(all) + room;
    }
    shared = end - round_up(bytes, 16);
    memset(shared, 0xff, size_t(end - shared));
}

[[noreturn]] void fail_kernel(const char *why)
{
    fprintf(stderr, "emulated kernel: %s, block %u, thread %u\n", why, block.x, running);
    abort();
}

void release_if_full(Barrier *barrier)
{
    if (barrier->alive == 0 || barrier->waiting < barrier->alive) return;
    barrier->waiting = 0;
    ++barrier->round;
    progressed = true;
}

/* The compiler must not inline or analyse these functions (noipa), since a jump must not be in the
 * function of its destination, and no register may be kept across a switch of fibers. */
[[noreturn, gnu::noipa]] void jump(Jump to)
{
    __builtin_longjmp(to, 1);
}

[[gnu::noipa]] void leave()
{
    if (!__builtin_setjmp(fibers[running].resume)) jump(scheduler);
}

[[noreturn, gnu::noipa]] void start(Fiber *f)
{
    static char *stacks;
    if (!stacks) {
        void *all = mmap(nullptr, BLOCK_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (all == MAP_FAILED) abort();
        stacks = static_cast<char *>(all);
    }
    f->stack = stacks + size_t(f - fibers) * STACK_BYTES;
    getcontext(&f->start);
    f->start.uc_stack.ss_sp = f->stack;
    f->start.uc_stack.ss_size = STACK_BYTES;
    makecontext(&f->start, fiber_main, 0);
    setcontext(&f->start);
    abort();
}

[[gnu::noipa]] void enter(Fiber *f)
{
    if (__builtin_setjmp(scheduler)) return;
    if (f->stack) jump(f->resume);
    start(f);
}

void wait_at(Barrier *barrier)
{
    Fiber *f = &fibers[running];
    if (without_fiber) fail_kernel("a barrier that no thread of the first block came to");
    f->round = barrier->round;
    launch_waited = true;
    ++barrier->waiting;
    release_if_full(barrier);
    if (barrier->round != f->round) return;
    f->barrier = barrier;
    leave();
    f->barrier = nullptr;
}

void fiber_main()
{
    for (;;) {
        (*thread_body)();
        fibers[running].done = progressed = true;
        --block_state.alive;
        --warp_states[running / WARP_LANES].alive;
        release_if_full(&block_state);
        release_if_full(&warp_states[running / WARP_LANES]);
        leave();
    }
}

Indices thread_indices(unsigned i)
{
    return {i % threads.x, i / threads.x % threads.y, i / threads.x / threads.y};
}

void run_block(unsigned count)
{
    block_state = {count, 0, 0};
    for (unsigned w = 0; w * WARP_LANES < count; ++w)
        warp_states[w] = {std::min<unsigned>(WARP_LANES, count - w * WARP_LANES), 0, 0};
    for (unsigned i = 0; i < count; ++i) fibers[i].done = false;
    while (block_state.alive > 0) {
        progressed = false;
        running = 0;
        for (unsigned i = 0; i < count; ++i, running = order.next(running)) {
            Fiber *f = &fibers[running];
            if (f->done || (f->barrier && f->barrier->round == f->round)) continue;
            thread = f->indices;
            enter(f);
        }
        if (!progressed) fail_kernel("threads wait at different barriers");
    }
}

/* Runs a block whose threads never wait, one thread after the other and without fibers. */
void run_block_directly(unsigned count)
{
    without_fiber = true;
    running = 0;
    for (unsigned i = 0; i < count; ++i, running = order.next(running)) {
        thread = fibers[running].indices;
        (*thread_body)();
    }
    without_fiber = false;
}
} // namespace

void block_barrier()
{
    wait_at(&block_state);
}

int block_count(bool mine)
{
    static int counts[2];
    int *count = &counts[block_state.round / 2 % 2]; /* the two counters are used in turn, each for two barriers */
    *count += mine;
    block_barrier();
    int result = *count;
    block_barrier();
    *count = 0;
    return result;
}

bool on_device(const void *at)
{
    const char *place = static_cast<const char *>(at);
    auto holds = [place](const Block &b) {
        return place >= b.memory && place < b.memory + b.bytes;
    };
    return std::any_of(memory_blocks.begin(), memory_blocks.end(), holds);
}

void window_open()
{
    if (windows++ > 0) return;
    for (const Block &b : memory_blocks) b.protect(PROT_READ | PROT_WRITE);
}

void window_close()
{
    if (--windows > 0) return;
    for (const Block &b : memory_blocks) b.protect(PROT_NONE);
}

unsigned lane()
{
    return running % WARP_LANES;
}

const uint64_t *exchange(uint64_t mine)
{
    unsigned warp = running / WARP_LANES;
    uint64_t *all = exchanged[warp_states[warp].round % 2];
    all[running] = mine;
    wait_at(&warp_states[warp]);
    return all + warp * WARP_LANES;
}

void *shared_memory()
{
    return shared;
}

/* Checks a launch against the limits that GPUs of compute capability 3.0 to 9.0 share, and against
 * the shared memory of an H100. */
bool accepts_launch(const Launch &launch, const void *kernel)
{
    auto within = [](dim3 d, size_t x, size_t y, size_t z) {
        return d.x > 0 && d.y > 0 && d.z > 0 && d.x <= x && d.y <= y && d.z <= z;
    };
    dim3 t = launch.threads;
    auto found = requested_bytes.find(kernel);
    if (!within(launch.grid, INT32_MAX, 65535, 65535) || !within(t, 1024, 1024, 64) ||
        size_t(t.x) * t.y * t.z > BLOCK_THREADS)
        last_error = cudaErrorInvalidConfiguration;
    else if (launch.shared_bytes > (found == requested_bytes.end() ? DEFAULT_SHARED_BYTES : found->second))
        last_error = cudaErrorInvalidValue;
    else
        return true;
    return false;
}

void run(const Launch &launch, const std::function<void()> &body)
{
    dim3 grid = launch.grid, threads_a_block = launch.threads;
    unsigned count = threads_a_block.x * threads_a_block.y * threads_a_block.z;
    prepare_shared(launch.shared_bytes);
    threads = {threads_a_block.x, threads_a_block.y, threads_a_block.z};
    blocks = {grid.x, grid.y, grid.z};
    for (unsigned i = 0; i < count; ++i) fibers[i].indices = thread_indices(i);
    thread_body = &body;
    launch_waited = false;
    order = new_order(count);
    const Order block_order = new_order(grid.x * grid.y * grid.z);
    for (unsigned i = 0, b = 0; i < block_order.count; ++i, b = block_order.next(b)) {
        block = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
        if (i == 0 || launch_waited)
            run_block(count);
        else
            run_block_directly(count);
    }
}
} // namespace emulate

size_t emulate::environment(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, nullptr, 10) : otherwise;
}

using emulate::environment;

extern "C" {
size_t emulate_graph_bytes(); /* stream.cc */
/* Environment variables that a test can set. EMULATE_DRIVER: CUDA version of the driver, such as
 * 12040; 0: there is no driver. EMULATE_OTHERS: bytes of memory that other processes use.
 * EMULATE_PITCH: largest pitch of a copy of rows (stream.cc). */
cudaError_t cudaDriverGetVersion(int *version)
{
    *version = int(environment("EMULATE_DRIVER", CUDART_VERSION));
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all)
{
    size_t taken = emulate::allocated_bytes + emulate_graph_bytes() + environment("EMULATE_OTHERS", 0);
    *all = emulate::MEMORY_BYTES;
    *free_bytes = taken < *all ? *all - taken : 0;
    return cudaSuccess;
}
cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    if (emulate::refused()) return cudaErrorStreamCaptureUnsupported;
    if (bytes + environment("EMULATE_OTHERS", 0) > emulate::MEMORY_BYTES)
        return cudaErrorMemoryAllocation;
    *memory = emulate::allocate(bytes);
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void *memory)
{
    if (emulate::refused()) return cudaErrorStreamCaptureUnsupported;
    emulate::finish_all();
    return !memory || emulate::release_memory(memory) ? cudaSuccess : cudaErrorInvalidValue;
}
/* Called by an emulated library that accesses the GPU's memory during its calls, without
 * emulate::enqueue. open: 1 before the access, 0 after it. */
void emulate_window(int open)
{
    if (open && emulate::recording()) {
        fprintf(stderr, "emulated CUDA: a call that does not enqueue its work is captured\n");
        abort();
    }
    if (!open) {
        emulate::window_close();
        return;
    }
    emulate::finish_all();
    emulate::window_open();
}
cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute what, int value)
{
    if (what == cudaFuncAttributePreferredSharedMemoryCarveout)
        return value >= -1 && value <= 100 ? cudaSuccess : cudaErrorInvalidValue;
    if (what != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        size_t(value) > emulate::SHARED_BYTES)
        return cudaErrorInvalidValue;
    emulate::requested_bytes[kernel] = size_t(value);
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaGetLastError()
{
    return std::exchange(emulate::last_error, cudaSuccess);
}
const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorInvalidConfiguration ? "invalid configuration argument"
           : error == cudaErrorInvalidValue       ? "invalid argument"
           : error == cudaErrorInvalidPitchValue  ? "invalid pitch argument"
                                                  : "emulated";
}
const char *cudaGetErrorName(cudaError_t)
{
    return "emulated";
}
/* Kernels are compiled with -fsanitize=alignment, which calls this function for a misaligned
 * access, where a GPU would fault. `at` points to file, line and column. */
[[noreturn]] void __ubsan_handle_type_mismatch_v1_abort(void *at, void *address);
[[noreturn]] void __ubsan_handle_type_mismatch_v1_abort(void *at, void *address)
{
    struct Location {
        const char *file;
        uint32_t line, column;
    };
    const Location *place = static_cast<const Location *>(at);
    fprintf(stderr, "emulated kernel: a misaligned address, %p, %s:%u, block %u, thread %u\n", address,
            place->file, place->line, emulate::block.x, emulate::thread.x);
    abort();
}
}
