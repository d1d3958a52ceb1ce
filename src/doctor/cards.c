/* Files read: /sys/class/net/NAME/statistics/tx_bytes, speed (Mbit/s), mtu, operstate; and
 * /sys/class/infiniband/NAME/ports/1/counters/port_xmit_data (in units of 4 bytes), rate ("100
 * Gb/sec"), state ("4: ACTIVE"). */
#include "cards.h"
#include "private.h"

#include <dirent.h>
#include <string.h>

static void read_net(const char *root, const char *name, Card *card)
{
    char path[PATH_BYTES], state[16];
    snprintf(path, sizeof path, "/sys/class/net/%.40s/statistics/tx_bytes", name);
    card->sent = doctor_number(root, path);
    snprintf(path, sizeof path, "/sys/class/net/%.40s/speed", name);
    double megabits = doctor_number(root, path);
    snprintf(path, sizeof path, "/sys/class/net/%.40s/mtu", name);
    card->mtu = (int)doctor_number(root, path);
    snprintf(path, sizeof path, "/sys/class/net/%.40s/operstate", name);
    card->up = doctor_word(root, path, state, sizeof state) && !strcmp(state, "up");
    card->bytes_per_s = megabits > 0 ? megabits * 1e6 / 8 : 0;
    snprintf(card->name, sizeof card->name, "%.40s", name);
}

static void read_port(const char *root, const char *name, Card *card)
{
    char path[PATH_BYTES], head[96];
    snprintf(head, sizeof head, "/sys/class/infiniband/%.40s/ports/1", name);
    snprintf(path, sizeof path, "%s/counters/port_xmit_data", head);
    card->sent = 4 * doctor_number(root, path);
    snprintf(path, sizeof path, "%s/rate", head);
    double gigabits = doctor_number(root, path);
    snprintf(path, sizeof path, "%s/state", head);
    card->up = doctor_number(root, path) == 4;
    card->bytes_per_s = gigabits > 0 ? gigabits * 1e9 / 8 : 0;
    snprintf(card->name, sizeof card->name, "%.40s", name);
}

static int read_folder(const char *root, const char *path, Card *card, int room,
                       void (*read)(const char *, const char *, Card *))
{
    char *name = mem_format("%s%s", root, path);
    DIR *folder = opendir(name);
    struct dirent *entry;
    int count = 0;
    while (folder && count < room && (entry = readdir(folder))) {
        if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "lo")) continue;
        card[count] = (Card){0};
        read(root, entry->d_name, &card[count]);
        count += card[count].sent >= 0;
    }
    if (folder) closedir(folder);
    mem_free(&name);
    return count;
}

int cards_read(const char *root, Card card[CARDS])
{
    int count = read_folder(root, "/sys/class/infiniband", card, CARDS, read_port);
    return count + read_folder(root, "/sys/class/net", card + count, CARDS - count, read_net);
}

void cards_compare(const Card *before, int count_before, const Card *after, int count, double least,
                   Network *network)
{
    network->used = network->fastest = (Card){0};
    for (int i = 0; i < count; ++i) {
        Card card = after[i];
        for (int b = 0; b < count_before; ++b)
            if (!strcmp(before[b].name, card.name)) card.sent -= before[b].sent;
        if (card.sent >= least && card.sent > network->used.sent) network->used = card;
        if (card.up && card.bytes_per_s > network->fastest.bytes_per_s) network->fastest = card;
    }
}
