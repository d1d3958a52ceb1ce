/* The executor's insides, shared by the files that make it (executor.c), hold data (data.c), move messages (messages.c), run
 * tasks (tasks.c) and end a step (finish.c). */
#ifndef WEFT_PIPELINE_EXECUTOR_H
#define WEFT_PIPELINE_EXECUTOR_H

#include "pipeline.h"

#include "plan_internal.h"

/* One slot of a chunk: the memory of a micro-batch in flight, and what its runs point to. */
typedef struct Slot {
    char *memory;   /* in the activation arena */
    char *before;   /* the micro-batch's memory in the chunk before, where this stage has it */
    OpRun *run;     /* owned; as ChunkPlan.run */
    bool empty;     /* no sample in this micro-batch: nothing is computed */
    float *metrics; /* METRIC_PAD of the backend's memory, in figures */
} Slot;

typedef struct ChunkRun {
    const ChunkPlan *plan;
    Slot *slot; /* owned; plan->slots */
    int64_t
        *pushed; /* owned, one a bucket: number of its last push; where gradients are shared out */
    /* channels; -1 where the model begins or ends, or has one stage only */
    int values_in, values_out, gradients_in, gradients_out;
} ChunkRun;

/* A micro-batch of data that is out of the loader. */
typedef struct Held {
    const Batch *batch;
    /* where host memory does not serve: */
    void *data; /* owned copies in the backend's memory */
    int32_t *labels;
    float *targets;
    int64_t *sample;
    Event *copied, *used; /* owned: the copies are there; the work that reads them is done */
    BatchSource source;   /* of batch, where it must go back to once it has been copied */
    bool acquired;        /* it must */
} Held;

/* In the backend's memory: what recorded work reads. */
typedef struct StepBlock {
    StepNumbers numbers;
    float asked[2]; /* METRIC_STOP, METRIC_SAVE: 1 or 0 */
    float overflow; /* 1 once a gradient is infinite or no number */
} StepBlock;

/* A parameter that is tied to one of another stage: their gradients come and go in pieces. */
typedef struct TieLink {
    int64_t offset, elements; /* of this rank's share of the gradient, in arena 0 */
    int out, in;              /* channels */
    int64_t piece;            /* elements of a message, at most */
} TieLink;

enum { STAT_OVERFLOW = METRIC_COUNT }; /* StepBlock's overflow, behind the metrics */

/* What all tasks of a step or an evaluation have in common. */
typedef struct RunOf {
    bool training;
    uint64_t step;
    float scale;
    int micros;
} RunOf;

/* Of a micro-batch's work that begins with one task, in one place of the ring. */
typedef struct Captures {
    Capture *capture; /* owned */
    int count;
} Captures;

typedef struct TensorGroup TensorGroup;

/* What has been fetched so far. */
typedef struct Fetched {
    Window window;
    int64_t *number; /* owned, one a bucket: of its last gathering */
    int64_t *
        fresh; /* owned, one a node: the gathering that its other forms of weights were made from */
} Fetched;

struct Executor {
    const Plan *plan; /* borrowed, like grid, backend and comm */
    const Grid *grid;
    Backend *backend;
    Comm *comm;
    ExecutorOptions options;
    Stream *stream;
    float *params;  /* owned arenas of the backend's memory */
    float *weights; /* what operations read: params, or the Comm's ring of values */
    float *level
        [33]; /* arenas of gradients' partial sums; level[0] is the Comm's where nothing is shared out */
    char *activations, *cache, *workspace;
    char *scratch;   /* in activations */
    ChunkRun *chunk; /* owned; plan->chunk_count */
    Held *held;      /* owned ring of held_room; out are micro-batches held_first .. held_next-1 */
    int held_room, held_first, held_next;
    int held_base;    /* place in the ring of the list's micro-batch 0 */
    Stream *copies;   /* owned; brings micro-batches to the device; NULL where host memory serves */
    StepBlock *block; /* owned, in the backend's memory */
    float *step_stats; /* owned, likewise: the slots' metrics */
    /* owned, where copies reach it: those of the last two steps, METRIC_PAD each, of which one is STAT_OVERFLOW */
    float *step_stats_host;
    Event *figured[2];             /* owned: they are there */
    int64_t steps;                 /* begun */
    Captures *captures;            /* owned: [task][place in the ring]; NULL: nothing is replayed */
    int capture_count;             /* of all */
    Capture statistics;            /* that moves them after a whole batch */
    Channels *channels;            /* NULL with one stage */
    Moves moves, evaluation_moves; /* owned: where messages move when told */
    TensorGroup *group;            /* NULL for one rank */
    TieLink *tie;                  /* owned */
    int tie_count;
    Schedule *evaluation; /* owned: forwards only */
    int *evaluation_last; /* owned: as plan->last_task */
    float *columns_host;  /* owned: the loss's results, brought to the host */
    float *logits_host;   /* owned: its input likewise, as floats; NULL until it is asked for */
    int64_t columns_per_sample;
    Fetched fetched; /* where the plan says so */
    float metrics[METRIC_COUNT];
    float asked[2]; /* of the coming step, as StepBlock.asked */
    bool overflow;  /* see executor_overflowed */
};

/* executor.c */
void *executor_place(const Executor *e, const ChunkRun *chunk, const Slot *slot, int64_t place);

/* data.c */
void held_new(Executor *e);
void held_free(Executor *e);
/* Takes micro-batches from the source until number `micro` is there, for what is queued from now on; wait_s as loader_next has
 * it. */
Status held_take(Executor *e, const BatchSource *source, int micro, double *wait_s);
void held_return(Executor *e, const BatchSource *source); /* the oldest */
const Held *held_of(const Executor *e, int micro);
int held_place(const Executor *e, int micro); /* in the ring */
void held_restart(Executor *e);               /* a new list begins with micro-batch 0 */
/* Points the slot's runs to micro-batch `micro`. */
void held_bind(Executor *e, ChunkRun *chunk, Slot *slot, int micro, const RunOf *of);
/* The loss's columns of the micro-batch that has just gone forward in slot, and the same brought to host memory. */
const float *columns_of(const Executor *e, const ChunkRun *chunk, const Slot *slot);
const float *columns_read(Executor *e, const ChunkRun *chunk, const Slot *slot, int64_t rows);

/* messages.c */
Status messages_new(Executor *e);
void messages_free(Executor *e);
/* Wait for a free place, or for the message. */
void message_send(Executor *e, const ChunkRun *chunk, const Slot *slot, const Message *message,
                  int channel);
void message_receive(Executor *e, const ChunkRun *chunk, const Slot *slot, const Message *message,
                     int channel);
/* What two chunks of a stage that follow each other have for each other, in both their slots. */
typedef struct MessageEnd {
    const ChunkRun *chunk;
    const Slot *slot;
    const Message *message;
} MessageEnd;
void message_copy(Executor *e, MessageEnd from, MessageEnd to);
/* Task number `task` of a list comes next: the messages that move before it. *next: of moves, from 0 on. */
void messages_move(Executor *e, const Moves *moves, int *next, int task);
/* The place for the next message of one of the executor's pipes, or the message: wait for it. */
char *pipe_place(Executor *e, Channels *channels, int channel);
const char *pipe_message(Executor *e, Channels *channels, int channel);
void ties_sum(
    Executor *e); /* Adds up the gradients of tied parameters. Collective on the stages. */

/* values.c: nothing of it where values are not fetched. */
void values_new(Executor *e);
void values_free(Executor *e);
void values_start(Executor *e, const Schedule *schedule);
/* The next use of the schedule's list: its buckets are here, and what comes soon is on its way. Collective on the replicas. */
void values_use(Executor *e);
/* Before an action that reads values: makes the other forms of its node's weights, where they are older than these. */
void values_renew(Executor *e, const OpRun *run, int node);
void values_forget(Executor *e);

/* exchange.c: slices through pipes, in host memory. */
typedef struct GroupPipes GroupPipes;
Status pipes_new(GroupPipes **pipes, Executor *e, const World *world); /* Collective on world. */
void pipes_free(GroupPipes **pipes); /* Collective. NULL: nothing */
const Exchange *pipes_exchange(const GroupPipes *pipes);
void pipes_progress(GroupPipes *pipes);
size_t pipes_bytes(int ranks); /* that a rank's take */

/* exchange_staged.c: the same for a GPU's memory. most: bytes of the largest tensor. host is borrowed. */
typedef struct Staged Staged;
Staged *staged_new(Executor *e, const Exchange *host, size_t most);
void staged_free(Staged **staged); /* NULL: nothing */
const Exchange *staged_exchange(const Staged *staged);

/* group.c: the ranks of a tensor group; nothing where there is one. */
Status group_new(Executor *e); /* Collective on the grid. */
void group_free(Executor *e);
const Exchange *group_exchange(const Executor *e); /* NULL for one rank */
void group_progress(Executor *e);
/* Adds up the gradients of which each rank has a part, and what was asked (METRIC_STOP, METRIC_SAVE), in arena 0. Collective on the group. */
void group_sum(Executor *e);

/* actions.c. A micro-batch's gradients go to its arena. */
void actions_bind(Executor *e, ChunkRun *chunk, Slot *slot, int micro);
/* Runs actions from .. to-1 of a pass. */
void actions_run(Executor *e, ChunkRun *chunk, Slot *slot, Pass pass, int micro, int from, int to);
/* Does the action deal with other ranks: begin a sum, wait for one, exchange slices? */
bool action_asks_others(const Executor *e, const ChunkRun *chunk, Pass pass, int micro, int action);
/* Waits for a push or a gathering (comm_push_wait, comm_allgather_wait), while messages move on. */
void collective_wait(Executor *e, bool (*wait)(Comm *, int64_t), int64_t number);

/* finish.c */
void metrics_new(Executor *e);
void metrics_free(Executor *e);
void metrics_take(Executor *e, const ChunkRun *chunk, Slot *slot, int rows); /* after its forward */
void metrics_put(Executor *e, const Slot *slot, int micro,
                 float *place); /* the micro-batch's, among its gradients */
float *
metrics_sum(const Executor
                *e); /* the step's sums of them in arena 0; NULL where they are another replica's */
/* Puts the step's numbers where its work reads them; its end. */
void step_begin(Executor *e, const RunOf *of);
void step_finish(Executor *e, const RunOf *of);

#endif
