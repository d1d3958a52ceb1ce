/* Emulates the functions of NCCL that weft calls, between processes of one machine through shared
 * memory. It is as strict as the documentation allows: a send is complete when the whole message
 * has been received; only the operations of one group progress together; a group begins when the
 * earlier work of its streams is done. A nonblocking communicator must not be used while it is in
 * progress. Two ranks of one host on one GPU are refused. NCCL_HOSTID names a rank's host;
 * NCCL_DEBUG=INFO prints it. The death of a peer is detected only if EMULATE_NETWORK or NCCL_HOSTID
 * is set, as NCCL does not detect it over NVLink. A rank that waits for HANG_S aborts. */
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <nccl.h>
#include <signal.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" void emulate_window(int open); /* runtime.cc: opens or ends access to the GPU's memory */

namespace
{
enum { RANKS = 16, CHUNK_BYTES = 256 << 10 };
const double HANG_S = 60;

struct Box { /* buffer of the channel from one rank to another */
    std::atomic<uint32_t> full; /* 1: data waits to be received */
    uint64_t total; /* bytes of the whole message */
    uint64_t bytes; /* bytes in data */
    char data[CHUNK_BYTES];
};
struct Region { /* shared by a communicator's ranks; zeroed when made */
    std::atomic<uint32_t> arrived, turn;
    pid_t pid[RANKS];
    char bus[RANKS][32], host[RANKS][64];
    int color[RANKS], key[RANKS];
    Box box[]; /* [from][to] */
};
size_t region_bytes(int ranks)
{
    return sizeof(Region) + sizeof(Box) * size_t(ranks) * size_t(ranks);
}

thread_local std::string last_words;

struct Op {
    bool send;
    int peer;
    char *at;
    uint64_t bytes, done;
    bool over, under_way;
};
struct AllReduce {
    std::vector<std::vector<char>> in; /* contribution of every rank */
    const void *from;
    void *to;
    size_t count;
};
} // namespace

struct ncclComm {
    Region *region;
    std::string name;
    int rank, ranks, splits = 0;
    bool blocking;
    std::atomic<int> state{ncclSuccess};
    std::atomic<bool> abort{false};
    std::thread worker;
    std::string words;
};

namespace
{
thread_local int group_depth;
thread_local ncclComm_t group_comm;
thread_local std::vector<Op> group_ops;
thread_local std::vector<AllReduce> group_sums;
thread_local std::vector<cudaStream_t> group_streams;

ncclResult_t refuse(ncclResult_t result, const std::string &words)
{
    last_words = words;
    return result;
}

/* Returns the value of an environment variable; NULL if it is not set or empty. */
const char *environment(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : nullptr;
}

bool dead(pid_t pid)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", int(pid));
    FILE *file = fopen(path, "re");
    if (!file) return true;
    size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = '\0';
    const char *state = strrchr(line, ')');
    return state && state[1] == ' ' && (state[2] == 'Z' || state[2] == 'X');
}

/* A loop in which a rank waits. wait() pauses, and returns false if the communicator was aborted or
 * a peer has died. If HANG_S pass without a call of renew(), wait() ends the process. */
struct WaitLoop {
    ncclComm_t comm;
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    bool network = environment("EMULATE_NETWORK") || environment("NCCL_HOSTID");
    explicit WaitLoop(ncclComm_t c) : comm(c) {}
    void renew()
    {
        start = std::chrono::steady_clock::now();
    }
    bool wait(const char *what)
    {
        usleep(20);
        if (comm->abort) return false;
        for (int r = 0; network && r < comm->ranks; ++r)
            if (comm->region->pid[r] && dead(comm->region->pid[r])) {
                comm->words = "rank " + std::to_string(r) + " closed its connection";
                comm->state = ncclRemoteError;
                return false;
            }
        std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
        if (waited.count() < HANG_S) return true;
        fprintf(stderr, "emulated NCCL: rank %d of %d waits for ever: %s\n", comm->rank,
                comm->ranks, what);
        abort();
    }
};

bool barrier(ncclComm_t comm)
{
    Region *r = comm->region;
    WaitLoop loop(comm);
    uint32_t turn = r->turn;
    if (++r->arrived == uint32_t(comm->ranks)) {
        r->arrived = 0;
        ++r->turn;
        return true;
    }
    while (r->turn == turn)
        if (!loop.wait("for all ranks to set up a communicator")) return false;
    return true;
}

Region *map_region(const std::string &name, int ranks)
{
    int file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, off_t(region_bytes(ranks))) != 0) return nullptr;
    void *at = mmap(nullptr, region_bytes(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return at == MAP_FAILED ? nullptr : static_cast<Region *>(at);
}

/* Waits for all ranks, and checks that each rank has a GPU of its own. */
void join(ncclComm_t comm)
{
    Region *r = comm->region;
    int device = 0;
    cudaGetDevice(&device);
    cudaDeviceGetPCIBusId(r->bus[comm->rank], sizeof r->bus[0], device);
    const char *host = environment("NCCL_HOSTID"), *debug = environment("NCCL_DEBUG");
    snprintf(r->host[comm->rank], sizeof r->host[0], "%s", host ? host : "");
    for (const char *name : {"NCCL_HOSTID", "NCCL_SOCKET_IFNAME"})
        if (debug && !strcmp(debug, "INFO") && environment(name))
            printf("NCCL INFO %s set by environment to %s\n", name, environment(name));
    r->pid[comm->rank] = getpid();
    if (!barrier(comm)) return;
    if (comm->rank == 0) shm_unlink(comm->name.c_str());
    for (int b = 1; b < comm->ranks; ++b)
        for (int a = 0; a < b; ++a)
            if (strcmp(r->bus[a], r->bus[b]) == 0 && strcmp(r->host[a], r->host[b]) == 0) {
                comm->words = "Duplicate GPU detected : rank " + std::to_string(a) + " and rank " +
                              std::to_string(b) + " both on CUDA device " + r->bus[a];
                comm->state = ncclInvalidUsage;
                return;
            }
    comm->state = ncclSuccess;
}

/* Runs `work` in a thread. Meanwhile the communicator's state is "in progress". If the communicator
 * is blocking, waits for the thread. */
template <class Work> ncclResult_t work_on(ncclComm_t comm, Work work)
{
    if (comm->worker.joinable()) comm->worker.join();
    comm->state = ncclInProgress;
    comm->worker = std::thread([comm, work]() mutable {
        work();
        int busy = ncclInProgress;
        comm->state.compare_exchange_strong(busy, ncclSuccess);
    });
    if (!comm->blocking) return ncclInProgress;
    comm->worker.join();
    return ncclResult_t(comm->state.load());
}

bool ready(ncclComm_t comm, const char *call)
{
    if (comm->state == ncclSuccess) return true;
    last_words = std::string(call) + ": the communicator is in progress, or has failed";
    return false;
}

bool good_config(const ncclConfig_t *config)
{
    return !config || (config->size == sizeof *config && config->magic == 0xcafebeef &&
                       config->version == NCCL_VERSION_CODE);
}

/* Moves one chunk of an operation if the box is empty (for a send) or full (for a receive). Returns
 * true if it moved a chunk or ended the operation. */
bool advance(ncclComm_t comm, Op *op)
{
    int from = op->send ? comm->rank : op->peer, to = op->send ? op->peer : comm->rank;
    Box *box = &comm->region->box[from * comm->ranks + to];
    bool full = box->full.load(std::memory_order_acquire) != 0;
    if (op->send == full) return false;
    if (op->send && op->done < op->bytes) {
        box->total = op->bytes;
        box->bytes = std::min<uint64_t>(CHUNK_BYTES, op->bytes - op->done);
        memcpy(box->data, op->at + op->done, box->bytes);
        op->done += box->bytes;
        box->full.store(1, std::memory_order_release);
    } else if (op->send) {
        op->over = true; /* the receiver has taken everything */
    } else if (box->total != op->bytes) {
        comm->words = "rank " + std::to_string(from) + " sends " + std::to_string(box->total) +
                      " bytes where " + std::to_string(op->bytes) + " are received";
        comm->state = ncclInvalidUsage;
    } else {
        memcpy(op->at + op->done, box->data, box->bytes);
        op->done += box->bytes;
        op->over = op->done == op->bytes;
        box->full.store(0, std::memory_order_release);
    }
    return true;
}

/* Returns true if the operation is not done, and all earlier operations with the same peer and
 * direction are done. */
bool has_turn(const std::vector<Op> &ops, size_t i)
{
    for (size_t k = 0; k < i; ++k)
        if (!ops[k].over && ops[k].send == ops[i].send && ops[k].peer == ops[i].peer) return false;
    return !ops[i].over;
}

void move_all(ncclComm_t comm, std::vector<Op> *ops)
{
    WaitLoop loop(comm);
    size_t left = ops->size();
    while (left > 0 && comm->state == ncclInProgress) {
        bool moved = false;
        for (size_t i = 0; i < ops->size(); ++i) {
            if (!has_turn(*ops, i) || !advance(comm, &(*ops)[i])) continue;
            moved = true;
            left -= (*ops)[i].over;
        }
        if (moved)
            loop.renew();
        else if (!loop.wait("for peers that never send, or never receive"))
            return;
    }
}

/* Adds in the order of a ring: the sum of slice s begins with rank s + 1 and ends with rank s. */
void add_all(ncclComm_t comm, const AllReduce &sum)
{
    size_t ranks = size_t(comm->ranks);
    float *to = static_cast<float *>(sum.to);
    for (size_t i = 0; i < sum.count; ++i) {
        size_t slice = i * ranks / sum.count;
        float total = 0;
        for (size_t k = 0; k < ranks; ++k) {
            const auto *in =
                reinterpret_cast<const float *>(sum.in[(slice + 1 + k) % ranks].data());
            total = k == 0 ? in[i] : total + in[i];
        }
        to[i] = total;
    }
}

ncclResult_t run_group()
{
    ncclComm_t comm = group_comm;
    group_comm = nullptr;
    if (!comm) return ncclSuccess;
    auto ops = std::move(group_ops);
    auto sums = std::move(group_sums);
    for (cudaStream_t stream : group_streams)
        if (cudaStreamSynchronize(stream) != cudaSuccess) return ncclUnhandledCudaError;
    group_ops.clear();
    group_sums.clear();
    group_streams.clear();
    return work_on(comm, [comm, ops, sums]() mutable {
        emulate_window(1);
        for (AllReduce &sum : sums) {
            uint64_t bytes = sum.count * sizeof(float);
            sum.in.resize(size_t(comm->ranks), std::vector<char>(bytes));
            memcpy(sum.in[size_t(comm->rank)].data(), sum.from, bytes);
            for (int r = 0; r < comm->ranks; ++r) {
                if (r == comm->rank) continue;
                ops.push_back({true, r, sum.in[size_t(comm->rank)].data(), bytes});
                ops.push_back({false, r, sum.in[size_t(r)].data(), bytes});
            }
        }
        move_all(comm, &ops);
        if (comm->state == ncclInProgress)
            for (const AllReduce &sum : sums) add_all(comm, sum);
        emulate_window(0);
    });
}

ncclResult_t note(ncclComm_t comm, cudaStream_t stream, const char *call)
{
    if (!ready(comm, call)) return ncclInvalidUsage;
    if (group_comm && group_comm != comm)
        return refuse(ncclInvalidUsage, "the emulated NCCL supports one communicator in a group");
    group_comm = comm;
    group_streams.push_back(stream);
    return ncclSuccess;
}

ncclResult_t noted()
{
    return group_depth > 0 ? ncclSuccess : run_group();
}

size_t type_bytes(ncclDataType_t type)
{
    return type == ncclFloat ? 4 : type == ncclBfloat16 || type == ncclHalf ? 2 : 1;
}

ncclResult_t transfer(bool send, void *at, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    if (peer < 0 || peer >= comm->ranks)
        return refuse(ncclInvalidArgument, "there is no such peer");
    ncclResult_t result = note(comm, stream, send ? "ncclSend" : "ncclRecv");
    if (result != ncclSuccess) return result;
    if (count > 0)
        group_ops.push_back({send, peer, static_cast<char *>(at), count * type_bytes(type)});
    return noted();
}

ncclComm_t comm_new(const std::string &name, int ranks, int rank, bool blocking)
{
    auto *comm = new ncclComm;
    comm->name = name;
    comm->rank = rank;
    comm->ranks = ranks;
    comm->blocking = blocking;
    comm->region = map_region(name, ranks);
    return comm;
}

/* ncclCommSplit: the ranks with the same color form a communicator, in the order of their keys. */
void split(ncclComm_t parent, int color, int key, ncclComm_t *out, bool blocking)
{
    Region *r = parent->region;
    r->color[parent->rank] = color;
    r->key[parent->rank] = key;
    if (!barrier(parent)) return;
    int ranks = 0, rank = 0;
    for (int i = 0; i < parent->ranks; ++i) {
        ranks += r->color[i] == color;
        bool before = r->key[i] < key || (r->key[i] == key && i < parent->rank);
        rank += r->color[i] == color && before;
    }
    std::string name =
        parent->name + "." + std::to_string(parent->splits++) + "." + std::to_string(color);
    if (!barrier(parent)) return;
    if (color == NCCL_SPLIT_NOCOLOR) return;
    ncclComm_t comm = comm_new(name, ranks, rank, blocking);
    comm->state = ncclInProgress;
    join(comm);
    __atomic_store_n(out, comm, __ATOMIC_RELEASE);
}

void release(ncclComm_t comm)
{
    comm->abort = true;
    if (comm->worker.joinable()) comm->worker.join();
    munmap(comm->region, region_bytes(comm->ranks));
    delete comm;
}
} // namespace

extern "C" {
ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}
const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const words[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    return words[result];
}
const char *ncclGetLastError(ncclComm_t comm)
{
    if (comm && !comm->words.empty()) last_words = comm->words;
    return last_words.c_str();
}
ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    static int made;
    *id = {};
    snprintf(id->internal, sizeof id->internal, "/weft-emulated-nccl-%d-%d", int(getpid()),
             made++);
    return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    if (!good_config(config))
        return refuse(ncclInvalidArgument, "ncclConfig_t: not NCCL_CONFIG_INITIALIZER");
    if (ranks > RANKS || rank < 0 || rank >= ranks)
        return refuse(ncclInvalidArgument, "ranks that cannot be");
    ncclComm_t made = *comm = comm_new(id.internal, ranks, rank, !config || config->blocking != 0);
    if (!made->region) return refuse(ncclSystemError, "no shared memory");
    return work_on(made, [made] { join(made); });
}
ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t *out,
                           ncclConfig_t *config)
{
    if (!good_config(config) || (color < 0 && color != NCCL_SPLIT_NOCOLOR))
        return refuse(ncclInvalidArgument, "ncclCommSplit: color or config");
    if (!ready(parent, "ncclCommSplit")) return ncclInvalidUsage;
    *out = nullptr;
    bool blocking = config && config->blocking != NCCL_CONFIG_UNDEF_INT ? config->blocking != 0
                                                                       : parent->blocking;
    if (parent->blocking) return work_on(parent, [=] { split(parent, color, key, out, blocking); });
    /* The parent is not in progress while the child is made, as in NCCL 2.28.9. */
    if (parent->worker.joinable()) parent->worker.join();
    parent->worker = std::thread([=] {
        usleep(5000);
        split(parent, color, key, out, blocking);
    });
    return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    *error = ncclResult_t(comm->state.load());
    return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    return ready(comm, "ncclCommFinalize") ? ncclSuccess : ncclInvalidUsage;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    release(comm);
    return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    release(comm);
    return ncclSuccess;
}
ncclResult_t ncclGroupStart()
{
    ++group_depth;
    return ncclSuccess;
}
ncclResult_t ncclGroupEnd()
{
    if (group_depth == 0) return refuse(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
    return --group_depth > 0 ? ncclSuccess : run_group();
}
ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    return transfer(true, const_cast<void *>(from), count, type, peer, comm, stream);
}
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return transfer(false, to, count, type, peer, comm, stream);
}
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    if (type != ncclFloat || op != ncclSum)
        return refuse(ncclInvalidArgument, "the emulated NCCL adds floats only");
    ncclResult_t result = note(comm, stream, "ncclAllReduce");
    if (result != ncclSuccess) return result;
    group_sums.push_back({{}, from, to, count});
    return noted();
}
}
