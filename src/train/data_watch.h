/* Notices that files of the data sets are changed while a run trains on them. */
#ifndef WEFT_TRAIN_DATA_WATCH_H
#define WEFT_TRAIN_DATA_WATCH_H

#include "trainer.h"

typedef struct DataWatch DataWatch;

/* Records size, times and inode of all files, before their fingerprints are computed. checkpoints:
 * the folder of the run's checkpoints, borrowed, for messages. On rank 0 only. Owner: the
 * caller. */
DataWatch *data_watch_new(const Trainer *t, const char *checkpoints);
void data_watch_free(DataWatch **watch);
/* Compares the files with their recorded state. A file that was touched, replaced or removed is
 * logged once, and the run continues as long as the set's fingerprint is the same. ERR_DATA that
 * names the file and what changed: the set holds other data. On rank 0 only. */
Status data_watch_check(DataWatch *watch);

#endif
