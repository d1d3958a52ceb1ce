/* Simulates sums between up to about ten thousand ranks, message by message: weft's two algorithms
 * (docs/sums.md), with the plans that training itself uses, and three of MPI's for comparison.
 *
 *     rank's port --+                                        +--> rank's port
 *     rank's port --+-- leaf switch -- up, core, down -- leaf switch -- ...
 *
 * The model. A message of n bytes first takes overhead_s of its sender's time and then occupies the
 * sender's port for n * s_per_byte; overhead_s and s_per_byte are o and G of LogGP. While the port
 * sends, the rank prepares its next message, unless one thread does both. Messages are sent in the
 * order in which they begin. The bytes of a message pass all links on its path at the same time
 * (cut-through): between two leaf switches these are the uplink of the first, the downlink of the
 * second, and the receiver's port. An uplink or a downlink is as fast as group / over ports. A link
 * carries one message after the other, in order of arrival; the core is never busy, and switches
 * have room for all messages that wait. A message arrives latency_s after its last byte, and the
 * step that waits for it continues at once. Additions take no time, since every algorithm adds the
 * same number of bytes. There is no other traffic. A sum is divided into pieces; their size and the
 * number in flight are those of training. Only the first pieces of a long sum are simulated; the
 * time of the rest is extrapolated from them. */
#ifndef WEFT_BENCH_SUMS_NETWORK_H
#define WEFT_BENCH_SUMS_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

/* Algorithms. ALL and HALVING are weft's; the others are MPI's (Thakur, Rabenseifner, Gropp 2005,
 * section 4; the ring: Patarasuk, Yuan 2009). In recursive doubling, rank r exchanges all bytes
 * with rank r ^ 2^k in round k. Rabenseifner's algorithm is halving with all bytes in one piece. */
typedef enum Way { ALL, HALVING, RING, DOUBLING, RABENSEIFNER, WAYS } Way;
extern const char *const way_names[WAYS];

typedef struct Net {
    /* seconds from a message's last byte on the links to its arrival */
    double latency_s;
    /* seconds in which the sender prepares a message */
    double overhead_s;
    /* seconds of a byte on a port */
    double s_per_byte;
    /* number of ranks on a leaf switch; 0: all ranks are on one */
    int group;
    /* bandwidth of all ranks of a switch divided by the bandwidth of its uplinks */
    double over;
    /* true: the port is idle while its rank prepares a message, because one thread does both */
    bool one_thread;
} Net;

typedef struct SimulatedSum {
    /* time until the last rank has the whole sum; NaN: impossible for this number of ranks
     * (doubling needs a power of two) */
    double seconds;
    /* number of messages, and bytes, that the rank that sends most has sent */
    double messages, bytes;
} SimulatedSum;
/* Simulates one sum. If the number of ranks is a multiple of net->group (and both are powers of two
 * for halving and doubling), every leaf switch carries the same messages at the same time. Then
 * only one leaf switch and its links are simulated, which gives the same bits. `every`: simulate
 * all leaf switches. */
SimulatedSum sum_simulated(Way way, int ranks, double bytes, const Net *net, bool every);
/* Largest number of pieces of a long sum that are simulated. The checks change it. */
extern int sums_pieces_most;

#endif
