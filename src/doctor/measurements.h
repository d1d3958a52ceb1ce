/* The structs that ranks measure; several checks may judge the same one. They hold no pointers and
 * are sent to rank 0 as bytes. If a struct describes a node, only that of the node's leader is
 * judged. */
#ifndef WEFT_DOCTOR_MEASUREMENTS_H
#define WEFT_DOCTOR_MEASUREMENTS_H

#include "report.h"
#include "tensor.h"
#include "topo/cards.h"

enum { NAME_BYTES = 48, MPI_BYTES = 64, PATH_BYTES = 256 };

/* How this process was started. */
typedef struct Launch {
    /* true: a launcher such as mpirun or srun started the ranks */
    bool launched;
    /* numbers of tasks and nodes that Slurm gave to the job; 0: not in a job of Slurm, or not
     * known */
    int tasks, nodes;
    char mpi_version[MPI_BYTES];
} Launch;

typedef struct Cores {
    /* threads that a run would start on this rank without train.threads (threads_share) */
    int threads;
    ThreadsLimits limits;
    /* CPUs per task that the job requested (srun -c); 0: no such request */
    int slurm_cpus;
    /* bit i % 8 of byte i / 8 is set if the affinity mask has a hardware thread of core i; a core's
     * number is that of its first hardware thread */
    unsigned char core[MASK_CPUS / 8];
} Cores;

/* Memory that the ranks of a node may use, together: limit_bytes is the machine's memory or the
 * smallest limit of the control groups; free_bytes is the memory available on the machine, but at
 * most limit_bytes. */
typedef struct Memory {
    double limit_bytes, free_bytes;
    /* path of the file that sets the limit; "": limit_bytes is the machine's memory */
    char group[PATH_BYTES];
} Memory;

/* Free space in /dev/shm. */
typedef struct ShmSpace {
    double free_bytes;
    /* true: there is a /dev/shm */
    bool exists;
} ShmSpace;

/* This user's files of MPI and NCCL in /dev/shm that are older than a minute and that no process
 * maps. At most 64 old files are examined. 0 and "" on ranks that are no leaders. */
typedef struct StaleFiles {
    int count;
    /* memory that the files take, in total */
    double bytes;
    /* path of one of the files */
    char example[PATH_BYTES];
} StaleFiles;

typedef struct Limits {
    /* soft limits on open files and on locked memory; UNLIMITED: no limit */
    double open_files, locked_bytes;
    /* true: the node has InfiniBand cards, which need locked memory */
    bool has_infiniband;
} Limits;
static const double UNLIMITED = 1e300;

enum { VERSIONS_BYTES = 1536, LIBRARIES_MAX = 192 };
/* The lines of `weft --version`, cut after 1400 bytes, and a line for the C library. */
typedef struct Versions {
    char lines[VERSIONS_BYTES];
} Versions;
/* The files that this process has loaded: the program, then its libraries, at most LIBRARIES_MAX
 * files. */
typedef struct Libraries {
    int count;
    struct LoadedFile {
        /* name without the folder; "weft" for the program */
        char name[NAME_BYTES];
        /* hash of the file's size and content; of a file above 4 MiB, of its size and of pieces of
         * its content (file_describe) */
        uint64_t hash;
    } file[LIBRARIES_MAX];
} Libraries;
typedef struct Processor {
    char model[CPU_MODEL];
} Processor;

typedef struct Gpus {
    /* number of devices that CUDA shows to this process; if it is 0, `reason` says why */
    int visible;
    /* true: NVIDIA's driver lists a GPU on this node */
    bool has_nvidia_gpu;
    /* true: this rank's GPU has responded, and `facts` is filled */
    bool responds;
    char reason[PATH_BYTES];
    /* the GPU that a run would give this rank */
    GpuFacts facts;
} Gpus;

typedef struct Clock {
    /* the kernel's clock source, as "tsc" */
    char source[NAME_BYTES];
    /* seconds by which this node's wall clock is ahead of the first node's */
    double ahead_s;
} Clock;

/* Speed of one thread: of a rank's threads, that with the least speed * run_fraction. */
typedef struct CoreSpeed {
    /* amount of work per second of CPU time, in a unit that is only good for comparisons */
    double speed;
    /* fraction of the wall time for which the thread ran */
    double run_fraction;
    /* the CPU that the thread ran on at its end */
    int cpu;
} CoreSpeed;
typedef struct Quota {
    /* quota of the control groups in cores; 0 if there is none */
    double cores;
    /* seconds for which a quota has stalled processes, counted from just before the first check */
    double throttled_s;
    /* seconds from the beginning of doctor_run to this measurement */
    double elapsed_s;
} Quota;
/* Result of memory_rate, which measures STREAM's triad, on one rank. */
typedef struct Triad {
    double bytes_per_s;
} Triad;

/* Maximum number of pairs that one node measures. */
enum { PEERS_MAX = 63 };
typedef struct Network {
    /* number of elements of `pair` that are filled; 0 on ranks that are no leaders */
    int peers;
    struct Pair {
        /* the other node's leader, by its rank in the job */
        int peer;
        double latency_s, bytes_per_s;
    } pair[PEERS_MAX];
    /* the card that sent most bytes during the measurement; name "": no card sent enough
     * (cards_compare) */
    Card used;
    /* the fastest card that is up; name "": none */
    Card fastest;
} Network;
/* Compares two readings of the cards' counters. Sets network->used to the card that sent most bytes
 * between the readings, if these are at least sent_min, and network->fastest to the fastest card
 * that is up. In both, `sent` is the number of bytes sent between the readings. Cards without a
 * counter are left out. */
void cards_compare(const Card *before, int count_before, const Card *after, int count,
                   double sent_min, Network *network);

/* Results of testing the folder that runs will write to. */
typedef struct FolderTest {
    /* true: this rank ran the test, as only leaders do */
    bool tested;
    /* true: the test came to its end in time, with or without errors of calls */
    bool answered;
    /* the kind of call that the test began last, such as "fsync"; "end": the test is complete */
    char last_call[NAME_BYTES];
    /* type of the file system */
    char type[NAME_BYTES];
    /* "" if the folder exists, else the nearest existing folder above it, which was tested */
    char existing_parent[PATH_BYTES];
    /* inodes 0: the file system has no fixed number of them */
    double free_bytes, inodes, free_inodes;
    /* error of a call on the test file: its errno, or ENOSPC for an incomplete write, EIO for an
     * early end of the file; 0: the call worked or was not tried. write_error: that of write or
     * fsync */
    int open_error, write_error, read_error, flock_error, fcntl_error;
    /* median of the seconds of a 4 KB write and fsync; 0: not measured */
    double sync_s;
    /* rates of writing (with an fsync at the end) and of reading; 0: not measured */
    double write_bytes_per_s, read_bytes_per_s;
} FolderTest;
typedef struct SharedFile {
    /* true: the first node has made a file in the folder; false on ranks that are no leaders */
    bool expected;
    /* true: this node sees the file */
    bool found;
} SharedFile;

#endif
