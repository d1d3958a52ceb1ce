/* Mode async: a file that records the order in which a server carried out the workers' requests,
 * and a replay that follows it. After a header that identifies the run, the file has the rank of
 * each request in one byte, or in two bytes with more than 255 workers. Each server has a file for
 * each start of a run:
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
    int workers, servers;
    /* number of this server, from 0 */
    int number;
    /* number of steps completed before this start, and hash of the parameters at that point */
    int64_t step;
    uint64_t start;
    /* all configuration that decides the run's bits (config_text); borrowed during the call */
    const char *run_text;
} OrderPlan;

typedef struct Order {
    OrderPlan plan;
    /* owned; NULL where plan.folder is NULL */
    FILE *file;
    char *path;
    /* bytes of a rank in the file: 1 or 2 */
    int bytes;
    /* replay: rank of the next request; -1: none */
    int next;
    /* replay: number of requests left in the file, including the next one */
    int64_t left;
} Order;

/* Opens the file for writing or for a replay; release with order_close. Writing first renames this
 * server's files of earlier starts of the run at plan.step or later, and adds their number to
 * *renamed; ERR_USAGE: a file of another run has the name. Replay: ERR_NOINPUT: there is no file;
 * ERR_DATA: the file is of another run; ERR_CONFIG: that run had other numbers of ranks. */
Status order_open(Order *order, const OrderPlan *plan, int64_t *renamed);
/* Records that a request of `rank` has been received; a replay goes on to the next one. Ends the
 * job if the replayed file has no request left. */
void order_add(Order *order, int rank);
/* Call it when all workers have reached a sync point after `step` steps; last: it ends the run.
 * Returns true if a replay has to stop there: the file ends, or a later start's file continues from
 * there. Ends the job if the run ends with requests left in the file. */
bool order_sync_point(Order *order, int64_t step, bool last);
/* Closes the file. ERR_IO: some of the order may not have been written. */
Status order_close(Order *order);

#endif
