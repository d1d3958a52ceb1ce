/* Reads the hardware of a node, and adds, finds and frees its parts, network cards and GPUs. */
#include "topo/hardware.h"
#include "hardware_cpus.h"

#include <string.h>

Status hardware_read(Hardware *h, bool gpus)
{
    *h = (Hardware){0};
    Status st = hardware_add_cpus(h);
    hardware_add_cards(h, "");
    if (gpus) hardware_add_gpus(h, "");
    hardware_join_cards(h, "");
    if (st != OK) hardware_fini(h);
    return st;
}

void hardware_remove_gpus(Hardware *h)
{
    for (int i = 0; i < h->gpu_count; ++i) {
        for (int k = 0; k < h->gpu_count; ++k) mem_free(&h->gpu[i].gpu_link[k]);
        for (int k = 0; h->gpu[i].card_link && k < h->card_count; ++k)
            mem_free(&h->gpu[i].card_link[k]);
        mem_free(&h->gpu[i].card_link);
        mem_free(&h->gpu[i].gpu_link);
        mem_free(&h->gpu[i].name);
        mem_free(&h->gpu[i].bus);
    }
    mem_free(&h->gpu);
    h->gpu_count = 0;
}

void hardware_fini(Hardware *h)
{
    hardware_remove_gpus(h);
    mem_free(&h->card);
    mem_free(&h->part);
    mem_free(&h->cpu);
    mem_free(&h->note);
    *h = (Hardware){0};
}

int hardware_add(Hardware *h, Part part)
{
    enum { GROWN_AT = 64 };
    if (h->part_count % GROWN_AT == 0)
        h->part = mem_resize(h->part, ((size_t)h->part_count + GROWN_AT) * sizeof *h->part);
    part.depth = part.parent < 0 ? 0 : h->part[part.parent].depth + 1;
    h->part[h->part_count] = part;
    return h->part_count++;
}

void hardware_add_gpu(Hardware *h, char *name, char *bus, int numa)
{
    int added = h->gpu_count++;
    h->gpu = mem_resize(h->gpu, (size_t)h->gpu_count * sizeof *h->gpu);
    h->gpu[added] = (Gpu){.name = name, .bus = bus, .numa = numa};
    for (int i = 0; i <= added; ++i) {
        Gpu *gpu = &h->gpu[i];
        gpu->gpu_link = mem_resize(gpu->gpu_link, (size_t)h->gpu_count * sizeof *gpu->gpu_link);
        for (int k = i < added ? added : 0; k <= added; ++k)
            gpu->gpu_link[k] = mem_text(k == i ? "X" : "SYS");
    }
}

void hardware_add_cards(Hardware *h, const char *root)
{
    Card *card = mem_new(CARDS_MAX * sizeof *card);
    int count = cards_read(root, card);
    h->card = mem_resize(h->card, ((size_t)h->card_count + (size_t)count + 1) * sizeof *h->card);
    for (int i = 0; i < count; ++i) {
        if (!card[i].physical) continue;
        card[i].sent_bytes = 0;
        card[i].mtu = 0;
        h->card[h->card_count++] = card[i];
    }
    mem_free(&card);
}

/* Returns the folder of a card's device in /sys, also for a port of the device. The caller owns the
 * text. */
static char *card_folder(const Card *card)
{
    const char *slash = strchr(card->name, '/');
    int length = slash ? (int)(slash - card->name) : (int)strlen(card->name);
    const char *class = card->infiniband ? "infiniband" : "net";
    return mem_format("/sys/class/%s/%.*s/device", class, length, card->name);
}

void hardware_join_cards(Hardware *h, const char *root)
{
    for (int i = 0; i < h->gpu_count; ++i) {
        Gpu *gpu = &h->gpu[i];
        char *gpu_folder = mem_format("/sys/bus/pci/devices/%s", gpu->bus);
        gpu->card_link = mem_new(((size_t)h->card_count + 1) * sizeof *gpu->card_link);
        for (int k = 0; k < h->card_count; ++k) {
            char *folder = card_folder(&h->card[k]);
            gpu->card_link[k] =
                mem_text(pci_word(root, gpu_folder, folder, gpu->numa, h->card[k].numa));
            mem_free(&folder);
        }
        mem_free(&gpu_folder);
    }
}

int hardware_next(const Hardware *h, int parent, int from)
{
    for (int i = from > parent ? from : parent + 1; i < h->part_count; ++i)
        if (h->part[i].parent == parent) return i;
    return -1;
}

int hardware_count(const Hardware *h, PartKind kind)
{
    int count = 0;
    for (int i = 0; i < h->part_count; ++i) count += h->part[i].kind == kind;
    return count;
}

int hardware_find(const Hardware *h, PartKind kind, const cpu_set_t *cpus)
{
    int found = -1;
    for (int i = 0; i < h->part_count; ++i)
        if (h->part[i].kind == kind && cpus_inside(cpus, &h->part[i].cpus)) found = i;
    return found;
}
