/* Describes the GPUs of a node by NVML, the library of NVIDIA's driver, which is loaded at run
 * time. This file declares NVML's interface, because the driver comes without a header. Links
 * between GPUs are given in the words of `nvidia-smi topo -m`. */
#include "topo/hardware.h"

#include <ctype.h>
#include <string.h>

/* Declarations from the NVML API Reference Guide, without the prefix nvml. */
typedef struct NvmlDevice NvmlDevice;
typedef struct NvmlPci {
    char bus_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} NvmlPci;
enum { NVML_SUCCESS = 0, NVML_LINKS_MAX = 36, NVML_LINK_TO_SWITCH = 2 };
typedef struct Nvml {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int code);
    int (*count)(unsigned *count);
    int (*handle)(unsigned index, NvmlDevice **device);
    int (*name)(NvmlDevice *device, char *name, unsigned bytes);
    int (*pci)(NvmlDevice *device, NvmlPci *pci);
    int (*ancestor)(NvmlDevice *a, NvmlDevice *b, int *level);
    int (*link_state)(NvmlDevice *device, unsigned link, int *active);
    int (*link_pci)(NvmlDevice *device, unsigned link, NvmlPci *remote);
    /* NULL with old drivers */
    int (*link_type)(NvmlDevice *device, unsigned link, int *type);
} Nvml;
static const LibrarySymbol symbols[] = {
    {"nvmlInit_v2", offsetof(Nvml, init)},
    {"nvmlShutdown", offsetof(Nvml, shutdown)},
    {"nvmlErrorString", offsetof(Nvml, error_string)},
    {"nvmlDeviceGetCount_v2", offsetof(Nvml, count)},
    {"nvmlDeviceGetHandleByIndex_v2", offsetof(Nvml, handle)},
    {"nvmlDeviceGetName", offsetof(Nvml, name)},
    {"nvmlDeviceGetPciInfo_v3", offsetof(Nvml, pci)},
    {"nvmlDeviceGetTopologyCommonAncestor", offsetof(Nvml, ancestor)},
    {"nvmlDeviceGetNvLinkState", offsetof(Nvml, link_state)},
    {"nvmlDeviceGetNvLinkRemotePciInfo_v2", offsetof(Nvml, link_pci)},
    {0},
};
/* old drivers lack this symbol */
static const LibrarySymbol optional[] = {
    {"nvmlDeviceGetNvLinkRemoteDeviceType", offsetof(Nvml, link_type)},
    {0},
};
static const Library library = {.file = "libnvidia-ml.so.1",
                                .name = "NVML",
                                .user = "the description of GPUs",
                                .cure = "do without it",
                                .symbol = symbols,
                                .optional = optional};

/* The NVLinks of a GPU. */
typedef struct Links {
    /* number of links that are not known to end at a switch */
    int count;
    /* number of links to switches */
    int to_switch;
    /* bus ids of the devices at the other ends of the counted links, [count] */
    char bus[NVML_LINKS_MAX][32];
} Links;

/* Reads the NVLinks of a GPU. If NVML does not report the type of a link's other end, links to
 * switches are not recognised; links to GPUs are recognised by the address of the other end. */
static Links read_links(const Nvml *nvml, NvmlDevice *device)
{
    Links links = {0};
    for (unsigned i = 0; i < NVML_LINKS_MAX; ++i) {
        int active = 0, type = -1;
        NvmlPci remote = {.domain = 0};
        if (nvml->link_state(device, i, &active) != NVML_SUCCESS || !active) continue;
        if (nvml->link_type && nvml->link_type(device, i, &type) == NVML_SUCCESS &&
            type == NVML_LINK_TO_SWITCH)
            ++links.to_switch;
        else if (nvml->link_pci(device, i, &remote) == NVML_SUCCESS)
            snprintf(links.bus[links.count++], sizeof links.bus[0], "%s", remote.bus_id);
    }
    return links;
}

/* Returns the word for a path of this level (nvmlGpuTopologyLevel_t). */
static const char *path_word(int level)
{
    static const struct {
        int level;
        const char *word;
    } words[] = {{10, "PIX"}, {20, "PXB"}, {30, "PHB"}, {40, "NODE"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        if (level <= words[i].level) return words[i].word;
    return "SYS";
}

/* Returns the word for a pair of GPUs, owned by the caller. The number after NV is the number of
 * NVLinks that join the two GPUs directly, plus the smaller of the two GPUs' numbers of NVLinks to
 * switches. */
static char *pair_word(const Nvml *nvml, NvmlDevice *const pair[2], const Links *a, const Links *b,
                       const char *bus_b)
{
    enum { LEVEL_SYSTEM = 50 };
    int direct = 0, level = LEVEL_SYSTEM;
    for (int i = 0; i < a->count; ++i) direct += strcasecmp(a->bus[i], bus_b) == 0;
    int switched = a->to_switch < b->to_switch ? a->to_switch : b->to_switch;
    if (direct + switched > 0) return mem_format("NV%d", direct + switched);
    if (nvml->ancestor(pair[0], pair[1], &level) != NVML_SUCCESS) level = LEVEL_SYSTEM;
    return mem_text(path_word(level));
}

/* Returns the bus id as /sys and lspci write it, in lower case and with four digits of the domain
 * instead of NVML's eight. */
static char *system_bus(const char *bus)
{
    char *text = mem_text(strlen(bus) > 12 && strncmp(bus, "0000", 4) == 0 ? bus + 4 : bus);
    for (char *at = text; *at; ++at) *at = (char)tolower((unsigned char)*at);
    return text;
}

static int add_gpu(Hardware *h, const Nvml *nvml, NvmlDevice *device, const char *root,
                   NvmlPci *pci)
{
    char name[96] = "", path[128];
    int code = nvml->name(device, name, sizeof name);
    if (code == NVML_SUCCESS) code = nvml->pci(device, pci);
    if (code != NVML_SUCCESS) return code;
    char *bus = system_bus(pci->bus_id);
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%.40s/numa_node", bus);
    hardware_add_gpu(h, mem_text(name), bus, (int)proc_read_number(root, path));
    return code;
}

static int add_gpus(Hardware *h, const Nvml *nvml, const char *root)
{
    unsigned count = 0;
    int code = nvml->count(&count);
    NvmlDevice **device = mem_new(((size_t)count + 1) * sizeof *device);
    NvmlPci *pci = mem_new(((size_t)count + 1) * sizeof *pci);
    Links *links = mem_new(((size_t)count + 1) * sizeof *links);
    for (unsigned i = 0; code == NVML_SUCCESS && i < count; ++i) {
        code = nvml->handle(i, &device[i]);
        if (code == NVML_SUCCESS) code = add_gpu(h, nvml, device[i], root, &pci[i]);
        if (code == NVML_SUCCESS) links[i] = read_links(nvml, device[i]);
    }
    for (int a = 0; code == NVML_SUCCESS && a < h->gpu_count; ++a)
        for (int b = 0; b < h->gpu_count; ++b) {
            if (a == b) continue;
            NvmlDevice *const pair[] = {device[a], device[b]};
            mem_free(&h->gpu[a].gpu_link[b]);
            h->gpu[a].gpu_link[b] = pair_word(nvml, pair, &links[a], &links[b], pci[b].bus_id);
        }
    mem_free(&links);
    mem_free(&pci);
    mem_free(&device);
    return code;
}

void hardware_add_gpus(Hardware *h, const char *root)
{
    Nvml nvml;
    mem_free(&h->note);
    if (library_bind(&library, &nvml) != OK) {
        if (proc_count_names(root, "/proc/driver/nvidia/gpus") > 0)
            h->note = mem_format("GPUs are not described: %s", fail_message());
        return;
    }
    int code = nvml.init();
    if (code == NVML_SUCCESS) {
        code = add_gpus(h, &nvml, root);
        nvml.shutdown();
    }
    if (code == NVML_SUCCESS) return;
    h->note = mem_format("GPUs are not described: NVML: %s", nvml.error_string(code));
    hardware_remove_gpus(h);
}
