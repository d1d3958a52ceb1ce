/* Reads the state and the counters of network cards. Network interfaces (physical if they have
 * device/ or, as a bond, bonding/):
 *     /sys/class/net/NAME/  statistics/tx_bytes, speed (Mbit/s), mtu, operstate, device/numa_node
 * InfiniBand:
 *     /sys/class/infiniband/NAME/device/numa_node
 *     /sys/class/infiniband/NAME/ports/1/  counters/port_xmit_data (in units of 4 bytes),
 *                                          rate ("100 Gb/sec"), state ("4: ACTIVE") */
#include "topo/cards.h"
#include "base.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_PATH_BYTES = 256 };

/* The cards that have been read. */
typedef struct Cards {
    Card *card;
    int count;
} Cards;

/* Returns the number at the beginning of a file in a folder below root; -1 if it cannot be read. */
static double number_in(const char *root, const char *folder, const char *file)
{
    char *path = mem_format("%s/%s", folder, file);
    double number = proc_read_number(root, path);
    mem_free(&path);
    return number;
}

static bool is_there(const char *root, const char *folder, const char *file)
{
    char *path = mem_format("%s%s/%s", root, folder, file);
    bool there = access(path, F_OK) == 0;
    mem_free(&path);
    return there;
}

static void add_interface(const char *root, const char *name, void *user)
{
    Cards *cards = user;
    char folder[96], path[FILE_PATH_BYTES], state[16];
    if (cards->count == CARDS_MAX || !strcmp(name, "lo")) return;
    snprintf(folder, sizeof folder, "/sys/class/net/%.40s", name);
    snprintf(path, sizeof path, "%s/operstate", folder);
    double megabits = number_in(root, folder, "speed");
    Card *card = &cards->card[cards->count++];
    *card = (Card){
        .sent_bytes = number_in(root, folder, "statistics/tx_bytes"),
        .bytes_per_s = megabits > 0 ? megabits * 1e6 / 8 : 0,
        .mtu = (int)number_in(root, folder, "mtu"),
        .up = proc_read_word(root, path, state, sizeof state) && !strcmp(state, "up"),
        .physical = is_there(root, folder, "device") || is_there(root, folder, "bonding"),
        .numa = (int)number_in(root, folder, "device/numa_node"),
    };
    snprintf(card->name, sizeof card->name, "%.40s", name);
}

/* Adds the ports of an InfiniBand card, which are numbered from 1. */
static void add_ports(const char *root, const char *name, void *user)
{
    enum { PORT_ACTIVE = 4 };
    Cards *cards = user;
    char folder[96], path[FILE_PATH_BYTES];
    snprintf(folder, sizeof folder, "/sys/class/infiniband/%.40s", name);
    snprintf(path, sizeof path, "%s/ports", folder);
    int ports = proc_count_names(root, path);
    int numa = (int)number_in(root, folder, "device/numa_node");
    for (int port = 1; port <= ports && cards->count < CARDS_MAX; ++port) {
        snprintf(path, sizeof path, "%s/ports/%d", folder, port);
        double sent = number_in(root, path, "counters/port_xmit_data");
        double gigabits = number_in(root, path, "rate");
        Card *card = &cards->card[cards->count++];
        *card = (Card){.sent_bytes = sent < 0 ? -1 : 4 * sent,
                       .bytes_per_s = gigabits > 0 ? gigabits * 1e9 / 8 : 0,
                       .up = number_in(root, path, "state") == PORT_ACTIVE,
                       .physical = true,
                       .infiniband = true,
                       .numa = numa};
        if (port == 1)
            snprintf(card->name, sizeof card->name, "%.40s", name);
        else
            snprintf(card->name, sizeof card->name, "%.32s/%d", name, port);
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const Card *)a)->name, ((const Card *)b)->name);
}

int cards_read(const char *root, Card card[CARDS_MAX])
{
    Cards cards = {.card = card};
    proc_each_name(root, "/sys/class/infiniband", add_ports, &cards);
    int ports = cards.count;
    proc_each_name(root, "/sys/class/net", add_interface, &cards);
    qsort(card, (size_t)ports, sizeof *card, compare_names);
    qsort(card + ports, (size_t)(cards.count - ports), sizeof *card, compare_names);
    return cards.count;
}
