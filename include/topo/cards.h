/* Network cards as /sys shows them: network interfaces, and InfiniBand ports. Not collective. */
#ifndef WEFT_TOPO_CARDS_H
#define WEFT_TOPO_CARDS_H

#include <stdbool.h>

enum { CARDS_MAX = 64, CARD_NAME_BYTES = 48 };
/* A network interface or an InfiniBand port: "eth0", "mlx5_0", "mlx5_0/2" for its second port. */
typedef struct Card {
    char name[CARD_NAME_BYTES];
    /* bytes sent, since boot or between two readings; -1: there is no counter */
    double sent;
    /* link speed in each direction; 0 if it is not known */
    double bytes_per_s;
    int mtu;
    bool up;
    /* a device or a bond of several, not an interface of software such as a bridge */
    bool physical;
    /* NUMA node; -1: not known */
    int numa;
    /* a port of an InfiniBand card */
    bool infiniband;
} Card;
/* Reads all cards but the loopback, InfiniBand ports first, each kind in the order of names. root:
 * "", or a folder that stands for /. Returns the number of entries of card that were filled. */
int cards_read(const char *root, Card card[CARDS_MAX]);

#endif
