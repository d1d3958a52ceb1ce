/* The structs that ranks fill with measurements. Several checks may judge the same struct. The
 * structs hold no pointers, because they are sent to rank 0 as bytes. If a struct describes a node,
 * checks judge only the one that the node's leader has filled. */
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
    /* number of tasks that Slurm gave to the job; 0: not in a job of Slurm, or not known */
    int tasks;
    /* number of nodes that Slurm gave to the job; 0: not in a job of Slurm, or not known */
    int nodes;
    /* first part of the MPI library's version text, such as "Open MPI v4.1.4" */
    char mpi_version[MPI_BYTES];
} Launch;

/* The cores that this rank may use. */
typedef struct Cores {
    /* number of threads that a run would start on this rank if train.threads is not set
     * (threads_share) */
    int threads;
    /* numbers of cores and CPUs in the affinity masks, and the quota (threads_limits) */
    ThreadsLimits limits;
    /* CPUs per task that the job requested (srun -c); 0: no such request */
    int slurm_cpus;
    /* set of cores: bit i % 8 of byte i / 8 is set if the affinity mask has a hardware thread of
     * core i. A core's number is that of its first hardware thread. */
    unsigned char core[NODE_CPUS_MAX / 8];
} Cores;

/* Memory that all ranks of a node together may use. */
typedef struct Memory {
    /* the machine's memory, or the smallest limit of the control groups if that is less */
    double limit_bytes;
    /* memory available on the machine, but at most limit_bytes */
    double free_bytes;
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
 * has mapped. At most 64 old files are examined. All fields are 0 on ranks that are no leaders. */
typedef struct StaleFiles {
    int count;
    /* memory that all these files take */
    double bytes;
    /* path of one of the files */
    char example[PATH_BYTES];
} StaleFiles;

typedef struct Limits {
    /* soft limit on the number of open files; UNLIMITED: no limit */
    double open_files;
    /* soft limit on locked memory; UNLIMITED: no limit */
    double locked_bytes;
    /* true: the node has InfiniBand cards, which need locked memory */
    bool has_infiniband;
} Limits;
/* value of a field of Limits if there is no limit */
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
        /* hash of the file's size and content; for a file above 4 MiB only pieces of the content
         * are hashed (file_describe) */
        uint64_t hash;
    } file[LIBRARIES_MAX];
} Libraries;
typedef struct Processor {
    char model[CPU_MODEL];
} Processor;

typedef struct Gpus {
    /* number of devices that CUDA shows to this process */
    int visible;
    /* true: NVIDIA's driver lists a GPU on this node */
    bool has_nvidia_gpu;
    /* true: this rank's GPU has responded, and `facts` is filled */
    bool responds;
    /* why CUDA shows no devices; "" if it shows any */
    char reason[PATH_BYTES];
    /* facts about the GPU that a run would give this rank */
    GpuFacts facts;
} Gpus;

typedef struct Clock {
    /* the kernel's clock source, such as "tsc" */
    char source[NAME_BYTES];
    /* seconds by which this node's wall clock is ahead of the first node's */
    double ahead_s;
} Clock;

/* Speed of one of this rank's threads: the thread whose speed * run_fraction is the smallest. */
typedef struct CoreSpeed {
    /* amount of work per second of CPU time. The unit has no meaning; speeds are only compared. */
    double speed;
    /* fraction of the wall time for which the thread ran */
    double run_fraction;
    /* number of the CPU on which the thread ended */
    int cpu;
} CoreSpeed;
/* The limit that control groups set on processor time. */
typedef struct Quota {
    /* the quota as a number of cores; 0: there is no quota */
    double cores;
    /* seconds for which a quota has stalled processes, counted from just before the first check */
    double throttled_s;
    /* seconds from the beginning of doctor_run to this measurement */
    double elapsed_s;
} Quota;
/* Memory bandwidth of one rank. */
typedef struct Triad {
    /* rate of STREAM's triad, as memory_rate measures it */
    double bytes_per_s;
} Triad;

/* maximum number of other nodes with which one node measures its connection */
enum { PEERS_MAX = 63 };
typedef struct Network {
    /* number of elements of `pair` that are filled; 0 on ranks that are no leaders */
    int peers;
    struct Pair {
        /* rank, in the job, of the other node's leader */
        int peer;
        double latency_s, bytes_per_s;
    } pair[PEERS_MAX];
    /* the card that sent most bytes during the measurement. Its name is "" if no card sent enough
     * (cards_compare). */
    Card used;
    /* the fastest card whose link is up. Its name is "" if no card has a known speed. */
    Card fastest;
} Network;
/* Compares two readings of the cards' counters, taken before and after the measurement. Sets
 * network->used to the card that sent most bytes between the readings, if it sent at least sent_min
 * bytes. Sets network->fastest to the fastest card whose link is up. In these two cards, sent_bytes
 * is the number of bytes sent between the readings. Cards without a counter are left out.
 * count_before and `count` are the numbers of cards in `before` and in `after`. */
void cards_compare(const Card *before, int count_before, const Card *after, int count,
                   double sent_min, Network *network);

/* Results of testing the folder that runs will write to. */
typedef struct FolderTest {
    /* true: this rank ran the test, as only leaders do */
    bool tested;
    /* true: the process of the test could not be started */
    bool not_started;
    /* true: the test came to its end in time, whether or not calls failed */
    bool answered;
    /* the kind of call that the test began last, such as "fsync"; "end": the test is complete */
    char last_call[NAME_BYTES];
    /* name of the file system's type, such as "Lustre" */
    char type[NAME_BYTES];
    /* "" if the folder exists, else the nearest existing folder above it, which was tested */
    char existing_parent[PATH_BYTES];
    double free_bytes;
    /* number of inodes of the file system; 0: it has no fixed number */
    double inodes;
    double free_inodes;
    /* Errors of the calls on the test file. 0: the call worked or was not tried; ENOSPC: a write
     * was incomplete; EIO: the file ended early; other values: the errno of the call. write_error
     * is that of write or of fsync. */
    int open_error, write_error, read_error, flock_error, fcntl_error;
    /* errno of statfs; if it is not 0, type, free_bytes and inodes are not known */
    int space_error;
    /* median time of a write of 4 KiB with an fsync; 0: not measured */
    double sync_s;
    /* rate of writing, with an fsync at the end; 0: not measured */
    double write_bytes_per_s;
    /* rate of reading; 0: not measured */
    double read_bytes_per_s;
} FolderTest;
/* Whether this node sees a file that the first node has made in the folder. */
typedef struct SharedFile {
    /* true: this rank is a leader, and the first node has made the file */
    bool expected;
    /* true: this node sees the file */
    bool found;
} SharedFile;

#endif
