/* Has the ImportRanks of an import in one process: there is nothing to agree on or to broadcast,
 * and progress is ignored. */
#include "data/import.h"

static Status agree(void *user, Status mine)
{
    (void)user;
    return mine;
}

static void broadcast(void *user, void *bytes, size_t count)
{
    (void)user, (void)bytes, (void)count;
}

static void ignore_progress(void *user, int64_t done, int64_t total, int64_t broken)
{
    (void)user, (void)done, (void)total, (void)broken;
}

const ImportRanks import_alone = {
    .size = 1, .agree = agree, .broadcast = broadcast, .progress = ignore_progress};
