/* Notices changes of the data sets' files while a run trains on them. */
#ifndef WEFT_TRAIN_DATA_WATCH_H
#define WEFT_TRAIN_DATA_WATCH_H

#include "../trainer.h"

typedef struct DataWatch DataWatch;

/* Records size, times and inode of all files of the data sets, and the offsets of their arrays: for
 * a set of fields as they were when it was opened, for other sets as they are now. Call it before
 * the fingerprints are computed. Borrows the trainer's data sets and fingerprints. checkpoints: the
 * folder of the run's checkpoints, for messages; borrowed. Collective. Owner: the caller. */
DataWatch *data_watch_new(const Trainer *t, const char *checkpoints);
void data_watch_free(DataWatch **watch);
/* Compares the files with their recorded state. If a file was touched, replaced or removed, logs
 * this once; the run may continue as long as the set's fingerprint is the same. ERR_IO: a changed
 * file cannot be read. ERR_DATA, with a message that names the file and the change: the set has
 * other data, or the same data are at other offsets of a file that is open or will be opened again.
 * Not collective. */
Status data_watch_check(DataWatch *watch);
/* Ends the job because a batch cannot be read, with `status` and the message of the last fail(). If
 * `status` is ERR_DATA or ERR_IO, and the data have changed since the start of the run, ends the
 * job with ERR_DATA and a message about this change instead. watch may be NULL: the data are then
 * not watched. */
_Noreturn void data_watch_die(DataWatch *watch, Status status);

#endif
