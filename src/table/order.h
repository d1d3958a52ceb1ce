/* Mode async: who was answered, in turn, a byte each, two where more than 255 ranks compute. Each
 * server has a file of its own for each start of a run:
 *
 *     FOLDER/server-0.order                  of a start at the run's beginning
 *     FOLDER/server-0.step-00000120.order    of one that went on from step 120
 *
 * A head says of which run it is. What ranks ask beside the order (world_tell_aside) is not in it.
 */
#ifndef WEFT_TABLE_ORDER_H
#define WEFT_TABLE_ORDER_H

#include "base.h"

typedef struct OrderPlan {
    /* borrowed; NULL: nothing is written or followed */
    const char *folder;
    bool replay;
    int askers, servers, number;
    /* where the run begins, and a hash of its parameters there */
    int64_t step;
    uint64_t start;
    /* borrowed for the call: what decides the run's bits, as config_text */
    const char *of;
} OrderPlan;

typedef struct Order {
    OrderPlan plan;
    /* owned, both; NULL: see plan.folder */
    FILE *file;
    char *path;
    int bytes;
    /* of a replay: whose turn it is, -1: nobody's, and how many turns are left with it */
    int next;
    int64_t left;
} Order;

/* Writes: files of this server that the run's earlier starts have left from this step on are moved
 * aside, *moved of them. ERR_USAGE: there is another run's. Replay: ERR_NOINPUT, ERR_DATA: it is
 * another run's, ERR_CONFIG: it had other numbers of ranks. Release with order_close. */
Status order_open(Order *order, const OrderPlan *plan, int64_t *moved);
/* That rank has been answered. Ends the job where a replay has no turn left. */
void order_add(Order *order, int rank);
/* All have met behind so many steps, the run's last ones: true where a replay has to stop, for its
 * run did, or another start's order goes on from here. Ends the job where the run is at its end and
 * the order is not. */
bool order_border(Order *order, int64_t step, bool last);
/* ERR_IO: what was written may be lost. */
Status order_close(Order *order);

#endif
