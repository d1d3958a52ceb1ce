/* The structs that ranks measure for the checks. They hold no pointers and are sent to rank 0 as
 * bytes. If a figure describes a node, only the one of the node's first rank is judged. */
#ifndef WEFT_DOCTOR_FIGURES_H
#define WEFT_DOCTOR_FIGURES_H

#include "report.h"
#include "tensor.h"

enum { NAME_BYTES = 48, MPI_BYTES = 64, PATH_BYTES = 256 };

typedef struct Started {
    /* a launcher started this process */
    bool launched;
    /* tasks and nodes of the batch job; 0 if there is no job or it does not say */
    int tasks, nodes;
    char mpi[MPI_BYTES];
} Started;

typedef struct Cores {
    /* threads that a run would start on this rank (threads_share) */
    int threads;
    ThreadsLimits limits;
    /* CPUs per task that the job requested (srun -c); 0: no such request */
    int slurm_cpus;
    /* a bit for each core in the affinity mask */
    unsigned char core[MASK_CPUS / 8];
} Cores;

typedef struct Memory {
    double limit_bytes, free_bytes;
    /* path of the file that sets the limit; "" if the limit is the machine's memory */
    char group[PATH_BYTES];
} Memory;

/* room in /dev/shm */
typedef struct Room {
    double free_bytes;
    bool known;
} Room;

/* this user's files in /dev/shm that earlier jobs left behind */
typedef struct Stale {
    int count;
    double bytes;
    /* path of one of the files */
    char name[PATH_BYTES];
} Stale;

typedef struct Limits {
    /* soft limits: open files, bytes of locked memory; no limit is 1e300 */
    double files, locked_bytes;
    /* the node has InfiniBand cards, which need locked memory */
    bool rdma;
} Limits;

enum { VERSIONS_BYTES = 1536, LIBRARIES = 192 };
typedef struct Versions {
    char lines[VERSIONS_BYTES];
} Versions;
typedef struct Libraries {
    int count;
    struct LoadedFile {
        char name[NAME_BYTES];
        uint64_t hash;
    } file[LIBRARIES];
} Libraries;
typedef struct Processor {
    char model[CPU_MODEL];
} Processor;

/* GPUs as this rank sees them. visible: number of devices that CUDA gives this process; if 0, why
 * says the reason. facts: the GPU that a run would give this rank. */
typedef struct Gpus {
    int visible;
    /* the driver lists at least one GPU; this rank's GPU answered and facts is filled */
    bool cards, answers;
    char why[PATH_BYTES];
    GpuFacts facts;
} Gpus;

typedef struct Clock {
    char source[NAME_BYTES];
    /* seconds by which this node's wall clock is ahead of the first node's */
    double ahead_s;
} Clock;

/* The slowest thread of a rank: its work per second of CPU time, the share of wall time for which
 * it ran, and the CPU that it ran on. */
typedef struct Speed {
    double speed, share;
    int cpu;
} Speed;
typedef struct Quota {
    /* quota of the control groups in cores; 0 if there is none */
    double cores;
    int mask_cores;
    /* seconds for which the quota stalled processes, within the last of_s seconds */
    double waited_s, of_s;
} Quota;
typedef struct Triad {
    double bytes_per_s;
} Triad;

/* Most pairs that one node measures. */
enum { PEERS = 63 };
typedef struct Card {
    char name[NAME_BYTES];
    /* bytes sent, since boot or between two readings; link speed, 0 if it is not known */
    double sent, bytes_per_s;
    int mtu;
    bool up;
} Card;
typedef struct Network {
    int peers;
    struct Pair {
        /* rank in the job of the other node's first rank */
        int rank;
        double latency_s, bytes_per_s;
    } pair[PEERS];
    /* the card that sent most of the measurement's bytes, name "" if none did; the fastest card
     * that is up */
    Card used, fastest;
} Network;

typedef struct Files {
    /* this rank ran the probe; the probe ended in time. at: the call that the probe announced
     * last */
    bool measured, answered;
    char at[NAME_BYTES], type[NAME_BYTES];
    /* "" if the folder is there, else the nearest folder above it that is */
    char above[PATH_BYTES];
    double free_bytes, inodes, free_inodes;
    /* errno of creating a file, of writing and reading it, of flock and of fcntl; 0 if it worked */
    int open_error, write_error, flock_error, fcntl_error;
    double sync_s, write_bytes_per_s, read_bytes_per_s;
} Files;
typedef struct Shared {
    /* must_be_found: the first node has left a file; found: this node sees it */
    bool must_be_found, found;
} Shared;

#endif
