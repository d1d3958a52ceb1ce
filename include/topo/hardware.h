/* Hardware of a node: sockets, NUMA nodes, caches, cores, network cards and GPUs. Not
 * collective. */
#ifndef WEFT_TOPO_HARDWARE_H
#define WEFT_TOPO_HARDWARE_H

#include "base.h"
#include "topo/cards.h"

#include <sched.h>

/* Kinds of parts of a node. A part contains CPUs (hardware threads). L1 caches are left out. */
#define PART_KINDS(W)                                                                              \
    W(PART_PACKAGE, "package")                                                                     \
    W(PART_NUMA, "numa")                                                                           \
    W(PART_L3, "l3")                                                                               \
    W(PART_L2, "l2")                                                                               \
    W(PART_CORE, "core")
typedef enum PartKind { PART_KINDS(LIST_CONSTANT) PART_KIND_COUNT } PartKind;
/* A part of a node. */
typedef struct Part {
    PartKind kind;
    /* index of the part that directly contains this part, lower than this part's index; -1: the
     * node */
    int parent;
    /* number of parts that contain this part; hardware_add sets it */
    int depth;
    /* number that the system has given to the part; cores of different packages may have the same
     * number */
    int number;
    /* bytes of memory of a NUMA node, or bytes of a cache; 0 for other kinds */
    int64_t bytes;
    cpu_set_t cpus;
} Part;

/* A GPU of a node. */
typedef struct Gpu {
    /* name: "NVIDIA H200"; bus: PCI bus address, "0000:65:00.0"; both owned */
    char *name, *bus;
    /* NUMA node; -1: not known */
    int numa;
    /* link to each GPU in the words of nvidia-smi topo -m, [gpus]: X (this GPU itself), NV4 (4
     * NVLinks), PIX, PXB, PHB, NODE, SYS; owned */
    char **gpu_link;
    /* link to each network card in the same words, [cards]; "": not known; NULL before
     * hardware_join_cards; owned */
    char **card_link;
} Gpu;

/* The hardware of a node. */
typedef struct Hardware {
    /* model of the processors; "": not known; owned */
    char *cpu;
    /* parts, [parts], each before the parts that it contains; owned */
    Part *part;
    int part_count;
    /* physical cards, [cards], whose sent_bytes and mtu are 0; owned */
    Card *card;
    int card_count;
    /* [gpus]; owned */
    Gpu *gpu;
    int gpu_count;
    /* reason why NVML has not described the GPUs; NULL or "": there is none; owned */
    char *note;
} Hardware;
/* Describes this node: CPUs by hwloc, and cards by /sys. If `gpus` is true and the node has the
 * library NVML, also describes its GPUs; this library may take seconds to start. ERR_CONFIG: hwloc
 * fails. Release with hardware_fini. */
Status hardware_read(Hardware *hardware, bool gpus);
/* Sets the environment variable HWLOC_PLUGINS_BLACKLIST, unless it is set already. hwloc then loads
 * no plug-ins that weft and MPI do not need, in this process, in MPI and in child processes. Such
 * plug-ins would load X11, OpenCL and libxml2, which takes 8 % of the processor time of a start.
 * Call it before the first use of hwloc and MPI. */
void hardware_leave_out_plugins(void);
/* Describes the CPUs of a node from hwloc's XML, as lstopo FILE.xml writes it. hwloc reads `text`,
 * which ends with a zero byte, in a separate process (isolated_run). path: name of the text in
 * messages. ERR_CONFIG: the text is invalid. ERR_DATA: hwloc crashed on it. Release with
 * hardware_fini. */
Status hardware_from_xml(Hardware *hardware, const char *path, const char *text, size_t bytes);
void hardware_fini(Hardware *hardware);
/* PARTS_MAX: largest number of parts of a node. PART_DEPTH_MAX: largest number of parts that are
 * nested in each other. */
enum { PARTS_MAX = 16384, PART_DEPTH_MAX = 8 };
/* Adds a part, and returns its index. */
int hardware_add(Hardware *hardware, Part part);
/* Adds a GPU, which then owns `name` and `bus`. Its links to all other GPUs are set to "SYS". */
void hardware_add_gpu(Hardware *hardware, char *name, char *bus, int numa);
/* Removes all GPUs. */
void hardware_remove_gpus(Hardware *hardware);
/* hardware_add_gpus adds the GPUs that NVML describes; there must be none before. If NVML fails for
 * one of them, or if NVML is not found although the node has NVIDIA's driver, adds none and sets
 * `note` to the reason. hardware_add_cards adds the physical cards that /sys describes. root: "",
 * or the path of a folder that replaces /. */
void hardware_add_gpus(Hardware *hardware, const char *root);
void hardware_add_cards(Hardware *hardware, const char *root);
/* Sets Gpu.card_link of all GPUs. Call it when GPUs and cards have been added. root: as in
 * hardware_add_gpus. */
void hardware_join_cards(Hardware *hardware, const char *root);
/* Returns the word of nvidia-smi for the path between two devices; "" if one of them is not on PCI.
 * a, b: symbolic links to the folders of the devices in /sys, such as /sys/class/net/eth0/device;
 * numa_a, numa_b: NUMA nodes of the devices, or -1. root: as in hardware_add_gpus. */
const char *pci_word(const char *root, const char *a, const char *b, int numa_a, int numa_b);
/* Returns the index of the first part directly inside `parent` (-1: the node) from index `from` on,
 * or -1. */
int hardware_next(const Hardware *hardware, int parent, int from);
/* Returns the number of parts of a kind. */
int hardware_count(const Hardware *hardware, PartKind kind);
/* Returns the index of the smallest part of this kind that contains all these CPUs, or -1. */
int hardware_find(const Hardware *hardware, PartKind kind, const cpu_set_t *cpus);

/* bytes of the longest text of a set of CPUs: "0,2,4, ..." */
enum { CPUS_TEXT_BYTES = 4 * CPU_SETSIZE };
/* Writes the CPUs as "0-3,8" to `out`, which has `room` bytes. If this is too little, the text ends
 * with "...". Returns out. */
char *cpus_write(char *out, size_t room, const cpu_set_t *cpus);
/* Reads a text of cpus_write. Returns false if the text has another form, or is incomplete
 * ("..."). */
bool cpus_read(const char *text, cpu_set_t *cpus);
/* Returns true if b has all CPUs of a. */
static inline bool cpus_inside(const cpu_set_t *a, const cpu_set_t *b)
{
    cpu_set_t both;
    CPU_AND(&both, a, b);
    return CPU_EQUAL(&both, a);
}

#endif
