/* The fibers behind kernel.h, the GPU's memory and its properties; streams are in stream.cc. New memory is filled with NaNs. A GPU's memory cannot be touched but by kernels and by calls that copy: a host that does so dies of
 * SIGSEGV, as it would with a GPU. (A kernel that reads the host's memory is not found out.) */
#include "kernel.h"
#include "queue.h"

#include <algorithm>
#include <cstdio>
#include <csetjmp>
#include <cstdlib>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

namespace emulate
{
Place thread, block, threads, blocks;

namespace
{
const size_t STACK_BYTES = 128 << 10;

struct Barrier {
    unsigned alive, waiting, turn;
};
struct Fiber {
    jmp_buf at; /* where it goes on: switches by jumps need no system call */
    ucontext_t start;
    char *stack; /* NULL: not started yet; a fiber goes on with the next block's thread */
    Place place;
    bool done;
};
Fiber fibers[BLOCK_THREADS];
Barrier whole, warps[BLOCK_THREADS / WARP_LANES];
uint64_t bring[2][BLOCK_THREADS]; /* in turn: nobody overwrites what another has not read */
jmp_buf scheduler;
unsigned now;       /* the fiber that runs */
bool moved, waited; /* since the last look; in this launch */
bool direct;        /* the thread is no fiber */
const std::function<void()> *job;

void fiber_main();

/* ---- the GPU's memory ---- */

const size_t MEMORY_BYTES = size_t(4) << 30, PIECE_BYTES = size_t(2) << 20;
struct Block {
    size_t at, bytes;
    bool taken;
};
std::vector<Block> memory_blocks; /* in order of their place */
char *memory;
size_t memory_end; /* nothing beyond has been given out */
int windows;       /* open now */

void protect(int how)
{
    if (memory_end > 0)
        mprotect(memory, (memory_end + PIECE_BYTES - 1) / PIECE_BYTES * PIECE_BYTES, how);
}

char *take_memory(size_t bytes)
{
    if (!memory) {
        char *room = static_cast<char *>(mmap(nullptr, MEMORY_BYTES + PIECE_BYTES, PROT_NONE,
                                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        memory =
            room + (PIECE_BYTES - reinterpret_cast<uintptr_t>(room) % PIECE_BYTES) % PIECE_BYTES;
        madvise(memory, MEMORY_BYTES, MADV_HUGEPAGE); /* few pages to protect */
    }
    bytes = (bytes + 255) / 256 * 256;
    for (Block &b : memory_blocks)
        if (!b.taken && b.bytes == bytes) {
            b.taken = true;
            return memory + b.at;
        }
    if (memory_end + bytes > MEMORY_BYTES) return nullptr;
    memory_blocks.push_back({memory_end, bytes, true});
    memory_end += bytes;
    return memory + memory_blocks.back().at;
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

void leave()
{
    if (!_setjmp(fibers[now].at)) _longjmp(scheduler, 1);
}

void enter(Fiber *f)
{
    if (_setjmp(scheduler)) return;
    if (f->stack) _longjmp(f->at, 1);
    f->stack = static_cast<char *>(malloc(STACK_BYTES));
    getcontext(&f->start);
    f->start.uc_stack.ss_sp = f->stack;
    f->start.uc_stack.ss_size = STACK_BYTES;
    makecontext(&f->start, fiber_main, 0);
    setcontext(&f->start);
}

void wait_at(Barrier *barrier)
{
    unsigned turn = barrier->turn;
    if (direct) give_up("a barrier that the first block did not come to");
    waited = true;
    ++barrier->waiting;
    release_if_full(barrier);
    while (barrier->turn == turn) leave();
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
    for (unsigned i = 0; i < count; ++i) {
        fibers[i].place = place_of(i);
        fibers[i].done = false;
    }
    while (whole.alive > 0) {
        moved = false;
        for (now = 0; now < count; ++now) {
            if (fibers[now].done) continue;
            thread = fibers[now].place;
            enter(&fibers[now]);
        }
        if (!moved) give_up("its threads wait for each other at different places");
    }
}

/* Threads that never wait need no stack of their own. */
void run_block_directly(unsigned count)
{
    direct = true;
    for (now = 0; now < count; ++now) {
        thread = place_of(now);
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
    int *here = &counts[whole.turn / 2 % 2]; /* in turn, two barriers each */
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
    return place >= memory && place < memory + memory_end;
}

/* Between the two the memory can be touched. */
void window_open()
{
    if (windows++ == 0) protect(PROT_READ | PROT_WRITE);
}

void window_close()
{
    if (--windows == 0) protect(PROT_NONE);
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

void run(dim3 grid, dim3 threads_a_block, const std::function<void()> &body)
{
    unsigned count = threads_a_block.x * threads_a_block.y * threads_a_block.z;
    if (count == 0 || count > BLOCK_THREADS || grid.x == 0 || grid.y > 65535 || grid.z > 65535)
        give_up("no GPU takes such a launch");
    threads = {threads_a_block.x, threads_a_block.y, threads_a_block.z};
    blocks = {grid.x, grid.y, grid.z};
    job = &body;
    bool first = true;
    waited = false;
    for (block.z = 0; block.z < grid.z; ++block.z)
        for (block.y = 0; block.y < grid.y; ++block.y)
            for (block.x = 0; block.x < grid.x; ++block.x, first = false) {
                if (first || waited)
                    run_block(count);
                else
                    run_block_directly(count);
            }
}
} // namespace emulate

extern "C" {
/* What may go wrong with a GPU: EMULATE_DRIVER is the CUDA version of the driver (12040; 0: there is none), EMULATE_OTHERS the
 * bytes of memory that other processes have. */
static size_t environment(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, nullptr, 10) : otherwise;
}
cudaError_t cudaDriverGetVersion(int *version)
{
    *version = int(environment("EMULATE_DRIVER", CUDART_VERSION));
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all)
{
    size_t taken = emulate::memory_end + environment("EMULATE_OTHERS", 0);
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
    if (!*memory) return cudaErrorMemoryAllocation;
    emulate::window_open();
    memset(*memory, 0xff, bytes);
    emulate::window_close();
    return cudaSuccess;
}
cudaError_t cudaFree(void *memory)
{
    if (emulate::refused()) return cudaErrorStreamCaptureUnsupported;
    emulate::finish_all();
    for (emulate::Block &b : emulate::memory_blocks)
        if (emulate::memory + b.at == memory) b.taken = false;
    return cudaSuccess;
}
/* For a library's stand-in that works when it is called, and not by emulate::enqueue. */
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
cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}
const char *cudaGetErrorString(cudaError_t)
{
    return "emulated";
}
const char *cudaGetErrorName(cudaError_t)
{
    return "emulated";
}
}
