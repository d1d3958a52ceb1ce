/* The trainer's functions for sparse tables: checks, set-up, memory, servers, and their part of a
 * step. */
#ifndef WEFT_TRAIN_SPARSE_H
#define WEFT_TRAIN_SPARSE_H

#include "../trainer.h"

/* Returns ERR_CONFIG or ERR_DATA if the configuration or the data do not suit a model with sparse
 * tables. Call it after the graph is built. Not collective. */
Status sparse_check(const Trainer *t);
/* Returns ERR_CONFIG if grid.servers does not suit the model or the places where it is cut into
 * stages. Call it after the graph is cut. Not collective. */
Status sparse_check_servers(const Trainer *t);
/* Creates t->tables for the tables of this rank's stage, or leaves it NULL if the stage has none.
 * Collective on the ranks that train; with servers, on t->job. */
void sparse_make(Trainer *t);
/* If the order of requests is written or replayed (run.order_log, run.replay), lets the servers
 * open the files of this order; otherwise does nothing. Call it before the first step, after
 * parameters are loaded and after resume_know_data. Collective; all ranks return the same
 * Status. */
Status sparse_begin(Trainer *t);
/* Frees t->tables, which ends the servers. Collective on the ranks that use tables. */
void sparse_free(Trainer *t);
/* Runs a server until the ranks that train have finished, or have failed during set-up. Collective
 * on `job`, all ranks of the job. */
Status sparse_serve(const Config *config, const World *job);
/* Returns the most bytes that the rows on a server may occupy. share_bytes: the server's share of
 * the host's memory. */
double sparse_server_limit(const Config *config, double share_bytes);
/* sparse_watch starts the watchdog of all ranks of the job, including servers; sparse_watch_end
 * ends it. Owner of the watchdog: the caller. Both functions are collective on the ranks that
 * train. */
Watchdog *sparse_watch(Trainer *t, const WatchdogOptions *options);
void sparse_watch_end(Trainer *t, Watchdog **watchdog);
/* Returns ERR_CONFIG with a message that all ranks would be servers. */
Status sparse_no_workers(const Config *config, int ranks);
/* Returns grid.mode. */
UpdateMode sparse_mode(const Trainer *t);
/* Divides the ranks of the job into a world of the servers and the ranks that use tables, and a
 * world of all other ranks; *world is the world of this rank. has_tables: true if this rank uses
 * tables or is a server. Collective on job. */
void sparse_split(World *world, const World *job, bool has_tables);
/* Returns the number of micro-batches that tables use at the same time, which the loader must
 * provide in addition to data.prefetch; 0 if the plan's stage reads no data or the model has no
 * tables. */
int sparse_batches_out(const Trainer *t, const Plan *plan);
/* Returns the state that the table's optimizer rule has for a row. */
RowState sparse_state(const Trainer *t, int table);
/* Returns the bytes of the tables' buffers on a rank of the plan's stage. */
size_t sparse_buffer_bytes(const Trainer *t, const Plan *plan);
/* Returns the most bytes of rows, with their index, that a rank of the plan's stage owns, counting
 * only tables with a known number of rows; 0 if servers own the rows. */
size_t sparse_row_bytes(const Trainer *t, const Plan *plan);
/* Logs the numbers of rows and requests. Collective on the ranks that use tables; does nothing on
 * other ranks. */
void sparse_report(Trainer *t);
/* Calls step_forward_backward, and sums the gradients of rows over the ranks that use the tables.
 * samples: as there. */
StepBatch sparse_forward_backward(Trainer *t, int64_t samples);
/* Calls sparse_forward_backward with all samples of the next batch. It is StepMode.forward_backward
 * of modes in which the ranks share a batch. */
StepBatch sparse_forward_backward_batch(Trainer *t);
/* Returns the sum of the squares of the gradients of rows, over all tables and ranks, added in the
 * order of tables. Collective. */
double sparse_grad_squares(Trainer *t);

#endif
