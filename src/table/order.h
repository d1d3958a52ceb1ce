/* Declares, for mode async, a file that records the order in which a server has carried out the
 * workers' requests, and a replay that follows this order. After a header that identifies the run,
 * the file has the rank that sent each request: in one byte, or in two bytes with more than 255
 * workers. Each server has a file for each start of a run:
 *
 *     FOLDER/server-0.order                  a start at the run's beginning
 *     FOLDER/server-0.step-00000120.order    a start that resumed from step 120
 *
 * Control messages (world_send_control) are not recorded. */
#ifndef WEFT_TABLE_ORDER_H
#define WEFT_TABLE_ORDER_H

#include "base.h"

typedef struct OrderPlan {
    /* folder of the order files, borrowed; NULL: no order is recorded or followed */
    const char *folder;
    /* true: follow a recorded order; false: record the order */
    bool replay;
    /* workers: number of workers; servers: number of servers */
    int workers, servers;
    /* number of this server, from 0 */
    int number;
    /* number of steps completed before this start */
    int64_t step;
    /* hash of the parameters at the beginning of this start */
    uint64_t params_hash;
    /* configuration on which the bits of the run depend, as text (config_text); borrowed during the
     * call */
    const char *run_text;
} OrderPlan;

typedef struct Order {
    OrderPlan plan;
    /* owned; NULL if plan.folder is NULL */
    FILE *file;
    /* path of the file, owned; NULL if plan.folder is NULL */
    char *path;
    /* number of bytes of a rank in the file: 1 or 2 */
    int rank_bytes;
    /* replay: rank of the next request; -1: no request is left, or this is no replay */
    int next;
    /* replay: number of requests left in the file, including the next one */
    int64_t left;
} Order;

/* Opens the file for recording or for a replay; release it with order_close. A recording first
 * renames this server's files of earlier starts of the run at plan.step or later, and adds their
 * number to *renamed. Errors of a recording: ERR_USAGE: a file that would be renamed belongs to
 * another run or is no order file; ERR_IO. Errors of a replay: ERR_NOINPUT: the file cannot be
 * opened; ERR_DATA: it is no order file, or belongs to another run or to a start at another step or
 * with other parameters; ERR_CONFIG: the recorded run had other numbers of workers or servers. */
Status order_open(Order *order, const OrderPlan *plan, int64_t *renamed);
/* In a recording, writes that a request of `rank` has been received; ends the job if that fails. In
 * a replay, advances to the next request; ends the job if the file has no request left. Does
 * nothing without a file. */
void order_add(Order *order, int rank);
/* Ends a part of the order at a sync point; call it when all workers have reached the sync point
 * after `step` steps. last: the run ends at this sync point. A recording writes the order to the
 * file up to here, and ends the job if that fails. A replay ends the job if the run ends with
 * requests left in the file. Returns true if a replay has to stop here, because the file ends, or
 * because the file of a later start begins here. */
bool order_sync_point(Order *order, int64_t step, bool last);
/* Closes the file. ERR_IO: a part of the order may not have been written. */
Status order_close(Order *order);

#endif
