/* Simulates sums between up to some ten thousand ranks, message by message: weft's two ways
 * (docs/sums.md), by the plans that training itself moves by, and three of MPI's beside them.
 *
 *     rank's port --+                                        +--> rank's port
 *     rank's port --+-- leaf switch -- up, core, down -- leaf switch -- ...
 *
 * The model. A message of n bytes is `overhead` of its sender's work, and then holds the sender's
 * port for n * byte_s, while the sender works on the next one (o and G of LogGP), unless one thread
 * has to do both; messages go in the order in which they are begun. Their bytes pass the links on
 * their way, without being stored in between: if they leave the leaf switch, that one's way up and
 * the other one's way down, each as fast as group / over ports, then the receiver's port. A link
 * moves messages one after the other, as they come; the core is never busy, and switches hold
 * whatever waits. latency after its last byte the message is there. What waits for it begins at
 * once: additions take no time (each way adds as many bytes), and there is no other traffic. Pieces
 * are as large as training's, and as many are under way at a time. Of a long sum the first pieces
 * are simulated, and the others follow at their pace. */
#ifndef WEFT_BENCH_SUMS_NETWORK_H
#define WEFT_BENCH_SUMS_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

/* Recursive doubling: all bytes to r ^ 2^k in round k. Rabenseifner's: halving with all bytes in
 * one piece. MPI's three: Thakur, Rabenseifner, Gropp 2005, section 4; the ring: Patarasuk, Yuan
 * 2009. */
typedef enum Way { ALL, HALVING, RING, DOUBLING, RABENSEIFNER, WAYS } Way;
extern const char *const way_names[WAYS];

typedef struct Net {
    /* of a message: on its way, and of the sender's time; of a byte */
    double latency_s, overhead_s, byte_s;
    /* ranks of a leaf switch; 0: all */
    int group;
    /* what they can send to what the switch can send up */
    double over;
    /* the port stands still while its rank works on a message: one thread does both */
    bool one_thread;
} Net;

typedef struct SimulatedSum {
    /* until the last rank has all; NaN: not for so many ranks (doubling: powers of two) */
    double seconds;
    /* that the rank with most of them sends */
    double messages, bytes;
} SimulatedSum;
/* Where ranks are a multiple of a leaf switch's (and, for halving and doubling, both powers of two)
 * every leaf switch does the same at the same time, so that one is simulated, with its links; the
 * result has the same bits as that of all, which `every` asks for. */
SimulatedSum sum_simulated(Way way, int ranks, double bytes, const Net *net, bool every);
/* Long sums are simulated up to so many pieces; for checks. */
extern int sums_pieces_most;

#endif
