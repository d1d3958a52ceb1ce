/* Reads the counters and the state of network cards. Network interfaces:
 *     /sys/class/net/NAME/  statistics/tx_bytes, speed (Mbit/s), mtu, operstate
 * InfiniBand, port 1 of each card:
 *     /sys/class/infiniband/NAME/ports/1/  counters/port_xmit_data (in units of 4 bytes),
 *                                          rate ("100 Gb/sec"), state ("4: ACTIVE") */
#include "cards.h"
#include "private.h"

#include <dirent.h>
#include <string.h>

static void read_interface(const char *root, const char *name, Card *card)
{
    char path[PATH_BYTES], state[16];
    snprintf(path, sizeof path, "/sys/class/net/%.40s/statistics/tx_bytes", name);
    card->sent = proc_read_number(root, path);
    snprintf(path, sizeof path, "/sys/class/net/%.40s/speed", name);
    double megabits = proc_read_number(root, path);
    snprintf(path, sizeof path, "/sys/class/net/%.40s/mtu", name);
    card->mtu = (int)proc_read_number(root, path);
    snprintf(path, sizeof path, "/sys/class/net/%.40s/operstate", name);
    card->up = proc_read_word(root, path, state, sizeof state) && !strcmp(state, "up");
    card->bytes_per_s = megabits > 0 ? megabits * 1e6 / 8 : 0;
    snprintf(card->name, sizeof card->name, "%.40s", name);
}

static void read_port(const char *root, const char *name, Card *card)
{
    enum { PORT_ACTIVE = 4 };
    char path[PATH_BYTES], port[96];
    snprintf(port, sizeof port, "/sys/class/infiniband/%.40s/ports/1", name);
    snprintf(path, sizeof path, "%s/counters/port_xmit_data", port);
    card->sent = 4 * proc_read_number(root, path);
    snprintf(path, sizeof path, "%s/rate", port);
    double gigabits = proc_read_number(root, path);
    snprintf(path, sizeof path, "%s/state", port);
    card->up = proc_read_number(root, path) == PORT_ACTIVE;
    card->bytes_per_s = gigabits > 0 ? gigabits * 1e9 / 8 : 0;
    snprintf(card->name, sizeof card->name, "%.40s", name);
}

/* Reads at most `capacity` cards with `read`, which sets `sent` to a negative number if the card
 * has no counter; such cards are left out. Returns their number. */
static int read_folder(const char *root, const char *path, Card *card, int capacity,
                       void (*read)(const char *, const char *, Card *))
{
    char *name = mem_format("%s%s", root, path);
    DIR *folder = opendir(name);
    struct dirent *entry;
    int count = 0;
    while (folder && count < capacity && (entry = readdir(folder))) {
        if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "lo")) continue;
        card[count] = (Card){0};
        read(root, entry->d_name, &card[count]);
        count += card[count].sent >= 0;
    }
    if (folder) closedir(folder);
    mem_free(&name);
    return count;
}

int cards_read(const char *root, Card card[CARDS_MAX])
{
    int count = read_folder(root, "/sys/class/infiniband", card, CARDS_MAX, read_port);
    return count +
           read_folder(root, "/sys/class/net", card + count, CARDS_MAX - count, read_interface);
}

void cards_compare(const Card *before, int count_before, const Card *after, int count,
                   double sent_min, Network *network)
{
    network->used = network->fastest = (Card){0};
    for (int i = 0; i < count; ++i) {
        Card card = after[i];
        for (int b = 0; b < count_before; ++b)
            if (!strcmp(before[b].name, card.name)) card.sent -= before[b].sent;
        if (card.sent >= sent_min && card.sent > network->used.sent) network->used = card;
        if (card.up && card.bytes_per_s > network->fastest.bytes_per_s) network->fastest = card;
    }
}
