/* The fibers for kernel.h, the GPU's memory and its properties; streams are in stream.cc. New
 * memory is filled with NaNs. Only kernels and calls that copy can access the GPU's memory: a host
 * that does dies of SIGSEGV, like a kernel that leaves a block of memory. (A kernel that reads host
 * memory is not detected.) */
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
Place thread, block, threads, blocks;

namespace
{
/* Not a power of two: else the stacks of all threads would share few sets of the processor's
 * caches. */
const size_t STACK_BYTES = (128 << 10) + 17 * 64;

struct Barrier {
    unsigned alive, waiting, turn;
};
/* The compiler's context: switching fibers with it takes a few instructions, many fewer than with
 * the C library's. */
typedef void *Jump[5];
struct Fiber {
    Jump at; /* point at which the fiber continues */
    const Barrier *barrier; /* the barrier that it waits at in this turn; NULL: none */
    unsigned turn;
    ucontext_t start;
    char *stack; /* NULL: not started yet; a fiber is used again for a thread of the next block */
    Place place;
    bool done;
};
Fiber fibers[BLOCK_THREADS];
Barrier whole, warps[BLOCK_THREADS / WARP_LANES];
uint64_t bring[2][BLOCK_THREADS]; /* used alternately, so that no value is overwritten before it is read */
Jump scheduler;
unsigned now;       /* the fiber that runs */
/* moved: since the last check; waited: in this launch */
bool moved, waited;
bool direct;        /* the thread runs without a fiber */
const std::function<void()> *job;

void fiber_main();

/* ---- the GPU's memory ---- */

const size_t MEMORY_BYTES = size_t(4) << 30, PAGE_BYTES = 4096, HUGE_BYTES = 512 * PAGE_BYTES, ALIGN_BYTES = 256;

/* Pages that can be accessed only while a window is open, between two that never can. The block
 * ends as close to the last one as its alignment allows; writes to the rest of its pages are
 * detected when it is released. */
struct Block {
    char *pages, *memory, *mapped;
    size_t pages_bytes, bytes, mapped_bytes;

    void protect(int how) const
    {
        mprotect(pages, pages_bytes, how);
    }
};
std::vector<Block> memory_blocks;
size_t memory_taken;
int windows; /* number of open windows */

size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

char *take_memory(size_t bytes)
{
    size_t page = bytes < HUGE_BYTES ? PAGE_BYTES : HUGE_BYTES; /* huge pages for large blocks, so that there are fewer to protect */
    size_t room = round_up(bytes, ALIGN_BYTES), pages = round_up(room, page);
    size_t all_bytes = pages + 3 * page;
    if (room > MEMORY_BYTES - memory_taken) return nullptr;
    void *all = mmap(nullptr, all_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return nullptr;
    char *mapped = static_cast<char *>(all);
    char *first = reinterpret_cast<char *>(round_up(reinterpret_cast<uintptr_t>(all), page) + page);
    if (page == HUGE_BYTES) madvise(first, pages, MADV_HUGEPAGE);
    memory_blocks.push_back({first, first + pages - room, mapped, pages, bytes, all_bytes});
    memory_taken += room;
    window_open();
    memset(first, 0xff, pages);
    window_close();
    return memory_blocks.back().memory;
}

/* Returns false if there is no such block. */
bool release_memory(void *memory)
{
    auto is = [memory](const Block &b) { return b.memory == memory; };
    auto b = std::find_if(memory_blocks.begin(), memory_blocks.end(), is);
    if (b == memory_blocks.end()) return false;
    b->protect(PROT_READ);
    for (const char *p = b->pages; p < b->pages + b->pages_bytes; ++p)
        if ((p < b->memory || p >= b->memory + b->bytes) && *p != char(0xff)) {
            fprintf(stderr, "emulated GPU: a byte was written at %td of a block of %zu bytes\n",
                    p - b->memory, b->bytes);
            abort();
        }
    munmap(b->mapped, b->mapped_bytes);
    memory_taken -= round_up(b->bytes, ALIGN_BYTES);
    memory_blocks.erase(b);
    return true;
}

/* ---- blocks and threads ---- */

/* Visits 0 to count - 1, beginning with 0, in another sequence at each launch: a result that
 * depends on the order is a race, and its bits differ when the same work is done again. */
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

/* ---- dynamic shared memory; sizes of an H100 ---- */

const size_t SHARED_BYTES = 227 << 10, UNASKED_BYTES = 48 << 10;
std::map<const void *, size_t> asked; /* sizes set by cudaFuncSetAttribute, for each kernel */
char *shared;                         /* shared memory of the current launch */
cudaError_t last_error;               /* error of a launch that was refused */

/* Prepares shared memory, filled with NaN, that ends at a page that cannot be written. */
void take_shared(size_t bytes)
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

[[noreturn]] void give_up(const char *why)
{
    fprintf(stderr, "emulated kernel: %s, block %u, thread %u\n", why, block.x, now);
    abort();
}

void release_if_full(Barrier *barrier)
{
    if (barrier->alive == 0 || barrier->waiting < barrier->alive) return;
    barrier->waiting = 0;
    ++barrier->turn;
    moved = true;
}

/* Separate functions that the compiler cannot look into: a jump must not be in the function of its
 * destination, and no register may be kept across a switch. */
[[noreturn, gnu::noipa]] void jump(Jump to)
{
    __builtin_longjmp(to, 1);
}

[[gnu::noipa]] void leave()
{
    if (!__builtin_setjmp(fibers[now].at)) jump(scheduler);
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
    if (f->stack) jump(f->at);
    start(f);
}

void wait_at(Barrier *barrier)
{
    Fiber *f = &fibers[now];
    if (direct) give_up("a barrier that the first block did not come to");
    f->turn = barrier->turn;
    waited = true;
    ++barrier->waiting;
    release_if_full(barrier);
    if (barrier->turn != f->turn) return;
    f->barrier = barrier;
    leave();
    f->barrier = nullptr;
}

void fiber_main()
{
    for (;;) {
        (*job)();
        fibers[now].done = moved = true;
        --whole.alive;
        --warps[now / WARP_LANES].alive;
        release_if_full(&whole);
        release_if_full(&warps[now / WARP_LANES]);
        leave();
    }
}

Place place_of(unsigned i)
{
    return {i % threads.x, i / threads.x % threads.y, i / threads.x / threads.y};
}

void run_block(unsigned count)
{
    whole = {count, 0, 0};
    for (unsigned w = 0; w * WARP_LANES < count; ++w)
        warps[w] = {std::min<unsigned>(WARP_LANES, count - w * WARP_LANES), 0, 0};
    for (unsigned i = 0; i < count; ++i) fibers[i].done = false;
    while (whole.alive > 0) {
        moved = false;
        now = 0;
        for (unsigned i = 0; i < count; ++i, now = order.next(now)) {
            Fiber *f = &fibers[now];
            if (f->done || (f->barrier && f->barrier->turn == f->turn)) continue;
            thread = f->place;
            enter(f);
        }
        if (!moved) give_up("its threads wait for each other at different places");
    }
}

/* Runs a block whose threads never wait, without a stack for each. */
void run_block_directly(unsigned count)
{
    direct = true;
    now = 0;
    for (unsigned i = 0; i < count; ++i, now = order.next(now)) {
        thread = fibers[now].place;
        (*job)();
    }
    direct = false;
}
} // namespace

void block_barrier()
{
    wait_at(&whole);
}

int block_count(bool mine)
{
    static int counts[2];
    int *here = &counts[whole.turn / 2 % 2]; /* used alternately, two barriers each */
    *here += mine;
    block_barrier();
    int result = *here;
    block_barrier();
    *here = 0;
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

/* The GPU's memory can be accessed between window_open and window_close. */
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
    return now % WARP_LANES;
}

const uint64_t *exchange(uint64_t mine)
{
    unsigned warp = now / WARP_LANES;
    uint64_t *all = bring[warps[warp].turn % 2];
    all[now] = mine;
    wait_at(&warps[warp]);
    return all + warp * WARP_LANES;
}

void *shared_memory()
{
    return shared;
}

/* Checks a launch against the limits of all GPUs of compute capability 3.0 to 9.0 and an H100's
 * shared memory. */
bool takes_launch(const Launch &launch, const void *kernel)
{
    auto within = [](dim3 d, size_t x, size_t y, size_t z) {
        return d.x > 0 && d.y > 0 && d.z > 0 && d.x <= x && d.y <= y && d.z <= z;
    };
    dim3 t = launch.threads;
    auto found = asked.find(kernel);
    if (!within(launch.grid, INT32_MAX, 65535, 65535) || !within(t, 1024, 1024, 64) ||
        size_t(t.x) * t.y * t.z > BLOCK_THREADS)
        last_error = cudaErrorInvalidConfiguration;
    else if (launch.shared_bytes > (found == asked.end() ? UNASKED_BYTES : found->second))
        last_error = cudaErrorInvalidValue;
    else
        return true;
    return false;
}

void run(const Launch &launch, const std::function<void()> &body)
{
    dim3 grid = launch.grid, threads_a_block = launch.threads;
    unsigned count = threads_a_block.x * threads_a_block.y * threads_a_block.z;
    take_shared(launch.shared_bytes);
    threads = {threads_a_block.x, threads_a_block.y, threads_a_block.z};
    blocks = {grid.x, grid.y, grid.z};
    for (unsigned i = 0; i < count; ++i) fibers[i].place = place_of(i);
    job = &body;
    waited = false;
    order = new_order(count);
    const Order turns = new_order(grid.x * grid.y * grid.z);
    for (unsigned i = 0, b = 0; i < turns.count; ++i, b = turns.next(b)) {
        block = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
        if (i == 0 || waited)
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
/* Properties that a test can set. EMULATE_DRIVER: CUDA version of the driver (12040; 0: there is
 * none). EMULATE_OTHERS: bytes of memory that other processes use. EMULATE_PITCH: most bytes
 * between the rows of one copy (stream.cc). */
cudaError_t cudaDriverGetVersion(int *version)
{
    *version = int(environment("EMULATE_DRIVER", CUDART_VERSION));
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all)
{
    size_t taken = emulate::memory_taken + emulate_graph_bytes() + environment("EMULATE_OTHERS", 0);
    *all = emulate::MEMORY_BYTES;
    *free_bytes = taken < *all ? *all - taken : 0;
    return cudaSuccess;
}
cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    if (emulate::refused()) return cudaErrorStreamCaptureUnsupported;
    if (bytes + environment("EMULATE_OTHERS", 0) > emulate::MEMORY_BYTES)
        return cudaErrorMemoryAllocation;
    *memory = emulate::take_memory(bytes);
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void *memory)
{
    if (emulate::refused()) return cudaErrorStreamCaptureUnsupported;
    emulate::finish_all();
    return !memory || emulate::release_memory(memory) ? cudaSuccess : cudaErrorInvalidValue;
}
/* For an emulated library that works during the call, without emulate::enqueue. */
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
    emulate::asked[kernel] = size_t(value);
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
/* Kernels are compiled with -fsanitize=alignment and call this where a GPU would fault. The data
 * from the compiler begin with file, line and column. */
[[noreturn]] void __ubsan_handle_type_mismatch_v1_abort(void *at, void *address);
[[noreturn]] void __ubsan_handle_type_mismatch_v1_abort(void *at, void *address)
{
    struct Place {
        const char *file;
        uint32_t line, column;
    };
    const Place *place = static_cast<const Place *>(at);
    fprintf(stderr, "emulated kernel: a misaligned address, %p, %s:%u, block %u, thread %u\n", address,
            place->file, place->line, emulate::block.x, emulate::thread.x);
    abort();
}
}
