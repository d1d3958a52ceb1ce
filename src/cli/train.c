/* weft train: the whole run. */
#include "private.h"

#include "train.h"

Status verb_train(int argc, char **argv)
{
    Job job;
    TRY(flags_take(&argc, argv, NULL, 0));
    Status status = job_open(&job, argc, argv);
    if (status == OK) status = train_run(job.config, &job.world);
    return job_close(&job, status);
}
