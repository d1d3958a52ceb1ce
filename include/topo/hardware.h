/* Hardware of a node: sockets, NUMA nodes, caches, cores, network cards and GPUs. Not
 * collective. */
#ifndef WEFT_TOPO_HARDWARE_H
#define WEFT_TOPO_HARDWARE_H

#include "base.h"
#include "topo/cards.h"

#include <sched.h>

/* A part that contains CPUs. L1 caches are left out. */
#define PART_KINDS(W)                                                                              \
    W(PART_PACKAGE, "package")                                                                     \
    W(PART_NUMA, "numa")                                                                           \
    W(PART_L3, "l3")                                                                               \
    W(PART_L2, "l2")                                                                               \
    W(PART_CORE, "core")
typedef enum PartKind { PART_KINDS(LIST_CONSTANT) PART_KIND_COUNT } PartKind;
typedef struct Part {
    PartKind kind;
    /* the part that contains this one directly, which has a lower index; -1: the node */
    int parent;
    /* parts that contain this one; set by hardware_add */
    int depth;
    /* number that the system gives it: of a core, in its package */
    int number;
    /* memory of a NUMA node, size of a cache; 0 for others */
    int64_t bytes;
    cpu_set_t cpus;
} Part;

typedef struct Gpu {
    /* "NVIDIA H200", "0000:65:00.0"; owned */
    char *name, *bus;
    /* NUMA node; -1: not known */
    int numa;
    /* how it is joined with each GPU in the words of nvidia-smi topo -m, [gpus]: X (the same), NV4
     * (4 NVLinks), PIX, PXB, PHB, NODE, SYS; owned */
    char **link;
    /* the same for each network card, "" where it is not known, [cards]; owned */
    char **card;
} Gpu;

typedef struct Hardware {
    /* model of the processors, "" if it is not known; owned */
    char *cpu;
    /* each part before those that it contains; owned */
    Part *part;
    int parts;
    /* physical cards; owned. Only name, bytes_per_s, up, physical and numa are set. */
    Card *card;
    int cards;
    /* owned */
    Gpu *gpu;
    int gpus;
    /* why GPUs are not described although the driver is there; "" otherwise; owned */
    char *note;
} Hardware;
/* Describes this node: CPUs by hwloc, cards by /sys, and, if `gpus`, GPUs by NVML where its library
 * is: it takes up to seconds to start. ERR_CONFIG: hwloc refuses. Release with hardware_fini. */
Status hardware_read(Hardware *hardware, bool gpus);
/* Describes the CPUs of the node of which text, with a zero byte at its end, is hwloc's XML, as
 * lstopo FILE.xml writes it, in a process of isolated_run. path: name of the text in messages.
 * ERR_CONFIG; ERR_DATA: hwloc crashed on it. Release with hardware_fini. */
Status hardware_from_xml(Hardware *hardware, const char *path, const char *text, size_t bytes);
void hardware_fini(Hardware *hardware);
/* Most parts of a node, and most that contain one another. */
enum { PARTS_MAX = 16384, PART_DEPTH_MAX = 8 };
/* Adds a part, whose index it returns. */
int hardware_add(Hardware *hardware, Part part);
/* Adds a GPU; takes name and bus. Its links to all GPUs are "SYS", and "X" to itself. */
void hardware_add_gpu(Hardware *hardware, char *name, char *bus, int numa);
/* Adds what NVML and /sys say. Where the driver is, but NVML is not found or refuses, there is a
 * note. root: "", or a folder that stands for /. */
void hardware_add_gpus(Hardware *hardware, const char *root);
void hardware_add_cards(Hardware *hardware, const char *root);
/* Finds the words for all pairs of a GPU and a card, after both have been added. */
void hardware_join_cards(Hardware *hardware, const char *root);
/* Returns the word for the way between two devices, whose folders in /sys are given by links as
 * /sys/class/net/eth0/device; "" if one of them is not on PCI. The numbers are their NUMA nodes, or
 * -1. */
const char *pci_word(const char *root, const char *a, const char *b, int numa_a, int numa_b);
/* Returns the first part directly inside `parent` (-1: the node) from index `from` on, or -1. */
int hardware_next(const Hardware *hardware, int parent, int from);
/* Number of parts of a kind. */
int hardware_count(const Hardware *hardware, PartKind kind);
/* Returns the smallest part of this kind that contains all these CPUs, or -1. */
int hardware_find(const Hardware *hardware, PartKind kind, const cpu_set_t *cpus);

/* Writes the CPUs as "0-3,8"; what does not fit is left out and marked by "...". Returns out. */
char *cpus_write(char *out, size_t room, const cpu_set_t *cpus);
/* Reads such a text; false if it is something else, or "..." says that it is not complete. */
bool cpus_read(const char *text, cpu_set_t *cpus);
/* Whether b has all CPUs of a. */
static inline bool cpus_inside(const cpu_set_t *a, const cpu_set_t *b)
{
    cpu_set_t both;
    CPU_AND(&both, a, b);
    return CPU_EQUAL(&both, a);
}

#endif
