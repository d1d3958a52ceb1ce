/* Mode async: a file that records in which order a server took the workers' requests, or a replay
 * that follows it. After a head that identifies the run it has one byte for each request, the rank;
 * two where more than 255 ranks compute. Each server has a file for each start of a run:
 *
 *     FOLDER/server-0.order                  a start at the run's beginning
 *     FOLDER/server-0.step-00000120.order    a start that resumed from step 120
 *
 * Control messages (world_send_control) are not recorded. */
#ifndef WEFT_TABLE_ORDER_H
#define WEFT_TABLE_ORDER_H

#include "base.h"

typedef struct OrderPlan {
    /* folder of the order files, borrowed; NULL: nothing is written or followed */
    const char *folder;
    bool replay;
    int workers, servers, number;
    /* first step of this start, and a hash of the parameters there */
    int64_t step;
    uint64_t start;
    /* text of all else that decides the run's bits (config_text); borrowed during the call */
    const char *of;
} OrderPlan;

typedef struct Order {
    OrderPlan plan;
    /* owned; NULL where plan.folder is NULL */
    FILE *file;
    char *path;
    int bytes;
    /* replay: the rank that has to be answered next, -1: none; number of requests left in the file,
     * that one included */
    int next;
    int64_t left;
} Order;

/* Opens the file for writing or for a replay. Writing renames this server's files from plan.step on
 * that earlier starts of the run have left, and counts them in *moved; ERR_USAGE: a file of another
 * run has the name. Replay: ERR_NOINPUT: there is no file; ERR_DATA: it is of another run;
 * ERR_CONFIG: that run had other numbers of ranks. Release with order_close. */
Status order_open(Order *order, const OrderPlan *plan, int64_t *moved);
/* Records that the next request of `rank` has been taken. Ends the job where a replay has no
 * request left. */
void order_add(Order *order, int rank);
/* Call it when all workers have reached a sync point after `step` steps; last: it ends the run.
 * Returns true where a replay has to stop: the recorded run stopped there, or the file of a later
 * start goes on from there. Ends the job if the run ends before the order. */
bool order_sync_point(Order *order, int64_t step, bool last);
/* ERR_IO: some of the order may not have been written. */
Status order_close(Order *order);

#endif
