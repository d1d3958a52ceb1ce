/* What a trainer does with sparse tables. */
#ifndef WEFT_TRAIN_SPARSE_H
#define WEFT_TRAIN_SPARSE_H

#include "trainer.h"

/* What the configuration may not ask of a model with tables: ERR_CONFIG. Once the graph is there.
 * Not collective. */
Status sparse_check(const Trainer *t);
/* What grid.servers may not be for this model and its cut. Likewise, once it is cut. */
Status sparse_check_servers(const Trainer *t);
/* Makes t->tables for the tables of this rank's stage; NULL where it has none. Collective, with
 * servers on t->job. */
void sparse_make(Trainer *t);
/* Before the first step, with parameters and what data hold known (resume_know_data): servers open
 * the order of requests where one is kept or followed. Collective; all ranks agree. */
Status sparse_begin(Trainer *t);
void sparse_free(Trainer *t);
/* A server's part of a run: until those who compute are done, or have failed before they began.
 * Collective on job. */
Status sparse_serve(const Config *config, const World *job);
/* What it may have of rows, of its share of its host's memory. */
double sparse_server_limit(const Config *config, double share_bytes);
/* Watches all ranks of the job, servers, too, until sparse_watch_end. Owner: the caller. Both
 * collective. */
Watchdog *sparse_watch(Trainer *t, const WatchdogOptions *options);
void sparse_watch_end(Trainer *t, Watchdog **watchdog);
/* ERR_CONFIG: so many ranks leave nobody to compute. */
Status sparse_no_workers(const Config *config, int ranks);
/* grid.mode. */
TableMode sparse_mode(const Trainer *t);
/* Of all ranks of the job those that have to do with tables. Collective on job. */
void sparse_split(World *part, const World *job, bool has_tables);
/* Micro-batches that the loader has to have out at a time, beside data.prefetch. */
int sparse_held(const Trainer *t, const Plan *plan);
/* The loader's micro-batches, with their bags where there are tables. */
BatchSource sparse_source(Trainer *t);
/* Closes the loader: what is out of it goes back. */
void sparse_close_loader(Trainer *t);
/* State of a row of the table by its rule. */
RowState sparse_state(const Trainer *t, int table);
/* What a rank of the plan's stage has for tables: buffers; rows where it owns them and all are
 * known. */
size_t sparse_buffer_bytes(const Trainer *t, const Plan *plan);
size_t sparse_row_bytes(const Trainer *t, const Plan *plan);
/* What became of the tables, in a run's log. Collective. */
void sparse_report(Trainer *t);
/* Sums of squares of the gradients of all tables, in their order, over all ranks. Collective. */
double sparse_grad_squares(Trainer *t);

#endif
