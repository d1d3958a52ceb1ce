/* What a rank measures for each check: plain values, which travel to rank 0 as they are. Figures of
 * a node are those of its first rank. */
#ifndef WEFT_DOCTOR_FIGURES_H
#define WEFT_DOCTOR_FIGURES_H

#include "report.h"
#include "tensor.h"

enum { NAME_BYTES = 48, MPI_BYTES = 64, PATH_BYTES = 256 };

typedef struct Started {
    /* by a launcher? */
    bool launched;
    /* of the batch job; 0: there is none, or it does not say */
    int tasks, nodes;
    char mpi[MPI_BYTES];
} Started;

typedef struct Cores {
    /* that a run would start, as threads_share */
    int threads;
    ThreadsLimits limits;
    /* of srun -c; 0: not said */
    int asked;
    /* a bit for each of its mask */
    unsigned char core[MASK_CPUS / 8];
} Cores;

typedef struct Memory {
    double limit_bytes, free_bytes;
    /* the file that sets the limit; "": the machine's own memory */
    char group[PATH_BYTES];
} Memory;

/* of /dev/shm */
typedef struct Room {
    double free_bytes;
    bool known;
} Room;

/* Files in /dev/shm of jobs that are over, of this user. */
typedef struct Stale {
    int count;
    double bytes;
    /* one of them */
    char name[PATH_BYTES];
} Stale;

typedef struct Limits {
    /* RLIM_INFINITY: a very large number */
    double files, locked_bytes;
    /* cards that need locked memory */
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

/* visible: that the process may use; 0, and why. facts: of the one that a run would give it. */
typedef struct Gpus {
    int visible;
    /* the driver knows some; the rank's has answered */
    bool cards, answers;
    char why[PATH_BYTES];
    GpuFacts facts;
} Gpus;

typedef struct Clock {
    char source[NAME_BYTES];
    /* of the wall clock, before that of the first node's */
    double ahead_s;
} Clock;

/* Of a rank's slowest thread: work for each second that it ran, the part of the time for which it
 * ran, the CPU. */
typedef struct Speed {
    double speed, share;
    int cpu;
} Speed;
typedef struct Quota {
    /* cores; 0: none */
    double cores;
    int mask_cores;
    /* for which processes waited for the quota, of how long */
    double waited_s, of_s;
} Quota;
typedef struct Triad {
    double bytes_per_s;
} Triad;

/* Between this node and others. */
enum { PEERS = 63 };
typedef struct Card {
    char name[NAME_BYTES];
    /* sent so far, or meanwhile; 0 bytes_per_s: not known */
    double sent, bytes_per_s;
    int mtu;
    bool up;
} Card;
typedef struct Network {
    int peers;
    struct Pair {
        /* the other node's first rank */
        int rank;
        double latency_s, bytes_per_s;
    } pair[PEERS];
    /* The card that sent most of it, "": none did; the fastest one that is up. */
    Card used, fastest;
} Network;

typedef struct Files {
    /* this rank measured; the file system answered in time, or was last asked for `at` */
    bool measured, answered;
    char at[NAME_BYTES], type[NAME_BYTES];
    /* "", or the nearest folder above the one asked for, which is not there */
    char above[PATH_BYTES];
    double free_bytes, inodes, free_inodes;
    /* errno of making a file, writing it, and locks in both ways */
    int open_error, write_error, flock_error, fcntl_error;
    double sync_s, write_bytes_per_s, read_bytes_per_s;
} Files;
typedef struct Shared {
    /* False: not asked; else whether the first node's file is here */
    bool asked, found;
} Shared;

#endif
