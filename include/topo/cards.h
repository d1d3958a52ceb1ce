/* Reads the network cards of a node from /sys: network interfaces, and InfiniBand ports. Not
 * collective. */
#ifndef WEFT_TOPO_CARDS_H
#define WEFT_TOPO_CARDS_H

#include <stdbool.h>

enum { CARDS_MAX = 64, CARD_NAME_BYTES = 48 };
/* A network interface or an InfiniBand port. */
typedef struct Card {
    /* "eth0", "mlx5_0", or "mlx5_0/2" for the second port of a card */
    char name[CARD_NAME_BYTES];
    /* number of bytes sent since the boot, or a difference between two readings; -1: there is no
     * counter */
    double sent_bytes;
    /* speed of the link in each direction; 0: not known */
    double bytes_per_s;
    /* largest packet in bytes; -1: not known; 0: an InfiniBand port */
    int mtu;
    /* true: the link is up */
    bool up;
    /* true: the card is a device, or a bond of several devices; false: it is an interface in
     * software, such as a bridge */
    bool physical;
    /* NUMA node; -1: not known */
    int numa;
    /* true: the card is a port of an InfiniBand card */
    bool infiniband;
} Card;
/* Reads all cards except the loopback: first InfiniBand ports, then interfaces, each sorted by
 * name. root: "", or the path of a folder that is used in place of /. Returns the number of entries
 * of `card` that were filled. */
int cards_read(const char *root, Card card[CARDS_MAX]);

#endif
