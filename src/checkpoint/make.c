/* Makes a checkpoint from tensors that are read while it is saved. CheckpointIo.get cannot fail, so
 * the first error of reading is kept here, and got_all fails with it before the file is renamed. */
#include "make.h"

typedef struct Making {
    const CheckpointSource *source;
    /* status of reading */
    Status status;
    /* message of the failure; owned */
    char *why;
} Making;

static const float *get(void *user, int i, float *plain)
{
    Making *m = user;
    if (m->status != OK) return plain;
    m->status = m->source->read(m->source->user, i, plain);
    if (m->status != OK) m->why = mem_text(fail_message());
    return plain;
}

static Status got_all(void *user)
{
    const Making *m = user;
    return m->status == OK ? OK : fail(m->status, "%s", m->why);
}

Status checkpoint_make(const char *path, const CheckpointMeta *meta, const CheckpointSource *source)
{
    const World alone = world_alone();
    Making m = {.source = source};
    const CheckpointIo io = {.count = source->count,
                             .tensor = source->tensor,
                             .user = &m,
                             .get = get,
                             .got_all = got_all};
    Status st = checkpoint_save(&alone, path, meta, &io);
    mem_free(&m.why);
    return st;
}
