/* Reads the marks of a node's ranks in shared memory and the states of their processes in /proc.
 * Writes the last marks to a file. */
#include "node_ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* seconds without a mark after which the size of a rank's swapped memory is read */
static const double STILL_S = 1;

/* Sets node->count and node->mine, and for each rank the address of its marks, its process id and
 * its number in the job. */
static void use_segments(NodeRanks *node)
{
    node->count = node->world.size;
    node->mine = node->world.rank;
    for (int r = 0; r < node->count; ++r) {
        node->beat[r] = (Beat *)(void *)node->shared.segment[r];
        node->state[r].process = (int32_t)node->shared.pid[r];
        node->state[r].rank = node->shared.job_rank[r];
    }
}

bool node_ranks_init(NodeRanks *node, const World *world, int color, int job_rank)
{
    *node = (NodeRanks){.awake_s = clock_s()};
    Status split = world_split(&node->world, world, color);
    size_t ranks = (size_t)node->world.size;
    node->beat = mem_new(ranks * sizeof *node->beat);
    node->state = mem_new(ranks * sizeof *node->state);
    node->times = mem_new(ranks * sizeof *node->times);
    Status st = split != OK || ranks == 1
                    ? split
                    : shm_segments_init(&node->shared, &node->world, sizeof(Beat), "the watchdog");
    if (st == OK && ranks > 1) {
        use_segments(node);
    } else {
        static Beat beat;
        node->count = 1;
        node->mine = 0;
        node->beat[0] = &beat;
        node->state[0].process = (int32_t)getpid();
        node->state[0].rank = job_rank;
    }
    beat_move(node->beat[node->mine]);
    return st == OK;
}

void node_ranks_fini(NodeRanks *node)
{
    beat_move(NULL);
    if (node->shared.count > 0) shm_segments_fini(&node->shared);
    mem_free(&node->beat);
    mem_free(&node->state);
    mem_free(&node->times);
    world_part_fini(&node->world);
}

static bool is_stopped(char state)
{
    return state == 'T';
}

int node_ranks_first(const NodeRanks *node)
{
    for (int r = 0; r < node->mine; ++r) {
        char state = process_state((pid_t)node->state[r].process);
        if (state != PROCESS_ENDED && !is_stopped(state)) return r;
    }
    return node->mine;
}

/* Updates *since_s after a check of a condition. It is the time of the first check since which the
 * condition has always held, or 0 if it does not hold now. */
static void note_since(double *since_s, bool holds, double now_s)
{
    if (!holds)
        *since_s = 0;
    else if (*since_s == 0)
        *since_s = now_s;
}

static double swapped_bytes(int process)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", process);
    return proc_bytes(path, "VmSwap:");
}

static void look_at(const NodeRanks *node, int rank, double now_s)
{
    const Beat *beat = node->beat[rank];
    RankState *state = &node->state[rank];
    uint64_t count = atomic_load_explicit(&beat->count, memory_order_acquire);
    double since_s = 1e-6 * (double)atomic_load(&beat->step_began_us);
    state->newest = beat->mark[(count - 1) % BEAT_MARKS];
    state->newest.doing[BEAT_TEXT - 1] = '\0';
    state->stepping = atomic_load(&beat->step) != BEAT_NONE;
    state->serves = beat->is_server;
    state->process_state = process_state((pid_t)state->process);
    state->usual_s = 1e-6 * (double)atomic_load(&beat->usual_us);
    double marked_s = state->newest.at_s, awake_s = node->awake_s;
    state->step_elapsed_s = state->stepping ? now_s - (since_s > awake_s ? since_s : awake_s) : 0;
    state->still_s = now_s - (marked_s > awake_s ? marked_s : awake_s);
    state->swapped_bytes = state->still_s >= STILL_S ? swapped_bytes(state->process) : 0;
    double *stopped_s = &node->times[rank].stopped_s;
    note_since(stopped_s, is_stopped(state->process_state), now_s);
    /* A rank that has made a mark since it was first seen stopped has run in between, so the next
     * check sets its time again. */
    if (marked_s > *stopped_s) note_since(stopped_s, false, now_s);
    note_since(&node->times[rank].dead_s, state->process_state == PROCESS_ENDED, now_s);
}

void node_ranks_update(NodeRanks *node, double now_s)
{
    for (int r = 0; r < node->count; ++r) look_at(node, r, now_s);
}

static void write_rank(FILE *out, const NodeRanks *node, int rank, double now_s)
{
    const Beat *beat = node->beat[rank];
    char text[RANK_TEXT];
    uint64_t count = atomic_load(&beat->count);
    uint64_t first = count > BEAT_MARKS ? count - BEAT_MARKS : 0;
    fprintf(out, "rank %d, process %d\n", node->state[rank].rank, node->state[rank].process);
    for (uint64_t i = first; i < count; ++i) {
        BeatMark mark = beat->mark[i % BEAT_MARKS];
        mark.doing[BEAT_TEXT - 1] = '\0';
        fprintf(out, "  %10.3f s  %s\n", mark.at_s - now_s, mark_text(&mark, text));
    }
}

Status node_ranks_write(const NodeRanks *node, const char *path)
{
    FILE *out = file_create_stream(path);
    if (!out) return fail(ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    double now_s = clock_s();
    for (int r = 0; r < node->count; ++r) write_rank(out, node, r, now_s);
    return file_close_stream(out, path);
}
