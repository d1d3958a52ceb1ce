/* Implements mode async. Servers have all parameters, also the dense ones, and carry out requests
 * in the order of arrival. They answer with current values, and apply each gradient at once.
 * Workers wait for each other only at sync points. A server's values depend only on the order of
 * requests, and a worker's requests only on the answers, so a run that follows a recorded order
 * gives the same bits.
 *
 *      worker   pull all -> step -> push -> pull all -> step -> push ->    sync point
 *      server   current values      update  current values      update     answers when all wait
 *
 * A dense parameter is divided into pieces of up to 4096 elements, which are assigned to the
 * servers in turn. A server stores its pieces one after the other; an update rule treats each piece
 * as a row. */
#include "tables.h"

#include <string.h>

enum { PIECE_ELEMENTS = 4096 };

typedef struct Piece {
    /* number of elements */
    int64_t elements;
    /* offsets of the piece in a worker's arenas: param_at in the arena of parameters, gradient_at
     * in the arena of gradients */
    int64_t param_at, gradient_at;
    /* offsets of the piece in its server's arrays: value_at in DensePart.value, state_at in
     * DensePart.state */
    int64_t value_at, state_at;
    /* index of the piece's parameter */
    int param;
    /* offset of the piece in this parameter */
    int64_t first;
    /* number of the piece's server, from 0 */
    int server;
    OptimRule rule;
    /* layout of the piece's optimizer state */
    RowState row_state;
    /* factor on the rule's learning rate (TableDense) */
    double lr_scale;
    /* true: weight decay applies */
    bool decay;
} Piece;

/* The dense parameters of mode async. */
typedef struct DensePart {
    /* number of pieces */
    int count;
    /* pieces of all parameters, [count]; owned */
    Piece *piece;
    /* number of floats of each server's values, [owners]; owned */
    int64_t *value_counts;
    /* number of floats of each server's optimizer state, [owners]; owned */
    int64_t *state_counts;
    /* server: its values; worker: buffer for the values of one server; owned */
    float *value;
    /* server: its optimizer state; worker: buffer for the state of one server; owned */
    float *state;
    /* server: buffer for the gradients of one worker; owned */
    float *gradient;
} DensePart;

/* Appends the pieces of one parameter. */
static void add_pieces(DensePart *d, int owners, int param, const TableDense *dense,
                       const Config *config)
{
    for (int64_t at = 0; at < dense->elements; at += PIECE_ELEMENTS) {
        int64_t left = dense->elements - at, n = left < PIECE_ELEMENTS ? left : PIECE_ELEMENTS;
        int server = d->count % owners;
        OptimRule rule = optim_rule(config, dense->rule_number);
        RowState state = rule.table->row_state(rule.constants, (int)n);
        d->piece[d->count++] = (Piece){.param_at = dense->offset + at,
                                       .gradient_at = dense->gradient + at,
                                       .elements = n,
                                       .value_at = d->value_counts[server],
                                       .state_at = d->state_counts[server],
                                       .first = at,
                                       .param = param,
                                       .server = server,
                                       .rule = rule,
                                       .row_state = state,
                                       .lr_scale = dense->lr_scale,
                                       .decay = dense->decay};
        d->value_counts[server] += n;
        for (int s = 0; s < state.slots; ++s) d->state_counts[server] += state.floats[s];
    }
}

/* Divides the dense parameters into pieces, and assigns the pieces to servers. */
static DensePart *dense_new(int owners, const TableDense *param, int count, const Config *config)
{
    int64_t pieces = 1;
    DensePart *d = mem_new(sizeof *d);
    for (int i = 0; i < count; ++i)
        pieces += (param[i].elements + PIECE_ELEMENTS - 1) / PIECE_ELEMENTS;
    d->piece = mem_new((size_t)pieces * sizeof *d->piece);
    d->value_counts = mem_new((size_t)owners * sizeof *d->value_counts);
    d->state_counts = mem_new((size_t)owners * sizeof *d->state_counts);
    for (int i = 0; i < count; ++i) add_pieces(d, owners, i, &param[i], config);
    return d;
}

static void dense_free(DensePart **dense)
{
    DensePart *d = *dense;
    mem_free(&d->piece);
    mem_free(&d->value_counts);
    mem_free(&d->state_counts);
    mem_free(&d->value);
    mem_free(&d->state);
    mem_free(&d->gradient);
    mem_free(dense);
}

void tables_dense_sizes(const TableDense *param, int count, const Config *config, int owners,
                        int64_t *values, int64_t *states)
{
    DensePart *d = dense_new(owners, param, count, config);
    *values = *states = 0;
    for (int o = 0; o < owners; ++o) {
        *values += d->value_counts[o];
        *states += d->state_counts[o];
    }
    dense_free(&d);
}

void async_init(Tables *t, const TableDense *param, int count, const Config *config)
{
    int64_t most = 1, states = 1;
    if (t->plan.mode != UPDATE_ASYNC) return;
    DensePart *d = t->dense = dense_new(t->owners, param, count, config);
    for (int o = 0; o < t->owners; ++o) {
        if (d->value_counts[o] > most) most = d->value_counts[o];
        if (d->state_counts[o] > states) states = d->state_counts[o];
    }
    d->value = mem_new((size_t)most * sizeof *d->value);
    d->state = mem_new((size_t)states * sizeof *d->state);
    if (t->is_worker) return;
    d->gradient = mem_new((size_t)most * sizeof *d->gradient);
    t->waits = mem_new((size_t)t->workers * sizeof *t->waits);
    t->request_owner = mem_new((size_t)t->bags * sizeof *t->request_owner);
    for (int b = 0; b < t->bags; ++b) {
        owner_init(&t->request_owner[b], &t->bag[b], &t->store[t->first_store[b]], t->plan.seed, 1,
                   -1);
        t->request_owner[b].limit_bytes = t->plan.limit_bytes;
        t->request_owner[b].rows_bytes = t->training.flight[0].owner[b].rows_bytes;
        t->request_owner[b].user = t;
    }
}

void async_fini(Tables *t)
{
    if (!t->dense) return;
    for (int b = 0; b < t->bags && t->request_owner; ++b) owner_fini(&t->request_owner[b]);
    mem_free(&t->request_owner);
    mem_free(&t->waits);
    dense_free(&t->dense);
}

/* ---- worker ---- */

static void send_command(const Tables *t, int owner, const Command *what)
{
    world_send(t->plan.world, t->first_owner + owner, what, sizeof *what);
}

/* Sends a command without data to one owner. sync_point: true if all workers are at a sync point.
 * No values change there, so the command is then a control message, which the recorded order leaves
 * out. */
static void send_request(const Tables *t, int owner, CommandKind kind, bool sync_point)
{
    Command what = {.kind = kind};
    if (sync_point)
        world_send_control(t->plan.world, t->first_owner + owner, &what, sizeof what);
    else
        send_command(t, owner, &what);
}

static void receive_floats(const Tables *t, int from, float *to, int64_t count)
{
    (void)world_receive(t->plan.world, from, to, (size_t)count * sizeof *to);
}

static void send_floats(const Tables *t, int to, const float *from, int64_t count)
{
    world_send(t->plan.world, to, from, (size_t)count * sizeof *from);
}

void async_rows(Tables *t, Flight *f)
{
    for (int b = 0; b < t->bags; ++b) {
        Lookup *look = &f->look[b];
        int tables = t->bag[b].tables;
        int64_t width = t->bag[b].width;
        for (int o = 0; o < t->owners; ++o)
            if (look->begin[o + 1] > look->begin[o])
                send_ids_command(t, COMMAND_PULL, b, o, look->count + o * tables,
                                 look->id + look->begin[o], (Command){0}, NULL);
        for (int o = 0; o < t->owners; ++o)
            if (look->begin[o + 1] > look->begin[o])
                receive_floats(t, t->first_owner + o, look->value + look->begin[o] * width,
                               (look->begin[o + 1] - look->begin[o]) * width);
    }
}

static void dense_pull(Tables *t, float *params, bool sync_point)
{
    DensePart *d = t->dense;
    for (int o = 0; o < t->owners; ++o) send_request(t, o, COMMAND_DENSE_PULL, sync_point);
    for (int o = 0; o < t->owners; ++o) {
        receive_floats(t, t->first_owner + o, d->value, d->value_counts[o]);
        for (int i = 0; i < d->count; ++i)
            if (d->piece[i].server == o)
                memcpy(params + d->piece[i].param_at, d->value + d->piece[i].value_at,
                       (size_t)d->piece[i].elements * sizeof *params);
    }
}

void tables_dense_pull(Tables *t, float *params)
{
    dense_pull(t, params, false);
}

static void push_rows(Tables *t, Flight *f, Command rates)
{
    for (int b = 0; b < t->bags; ++b) {
        Lookup *look = &f->look[b];
        int tables = t->bag[b].tables;
        int64_t width = t->bag[b].width;
        for (int o = 0; o < t->owners; ++o) {
            if (look->begin[o + 1] == look->begin[o]) continue;
            send_ids_command(t, COMMAND_PUSH_NOW, b, o, look->count + o * tables,
                             look->id + look->begin[o], rates, NULL);
            send_floats(t, t->first_owner + o, look->sum + look->begin[o] * width,
                        (look->begin[o + 1] - look->begin[o]) * width);
        }
    }
}

void tables_push(Tables *t, const float *grads, double lr, double grad_scale)
{
    DensePart *d = t->dense;
    Command rates = {.lr = lr, .grad_scale = grad_scale};
    push_rows(t, &t->training.flight[t->training.current], rates);
    rates.kind = COMMAND_DENSE_PUSH;
    for (int o = 0; o < t->owners; ++o) {
        for (int i = 0; i < d->count; ++i)
            if (d->piece[i].server == o)
                memcpy(d->value + d->piece[i].value_at, grads + d->piece[i].gradient_at,
                       (size_t)d->piece[i].elements * sizeof *grads);
        send_command(t, o, &rates);
        send_floats(t, t->first_owner + o, d->value, d->value_counts[o]);
    }
}

bool tables_wait_at_sync_point(Tables *t, int64_t step, bool last)
{
    bool stops = false, one;
    for (int o = 0; o < t->owners; ++o)
        send_command(t, o, &(Command){.kind = COMMAND_SYNC_POINT, .step = step, .last = last});
    for (int o = 0; o < t->owners; ++o) {
        (void)world_receive(t->plan.world, t->first_owner + o, &one, sizeof one);
        stops = stops || one;
    }
    return stops;
}

/* Copies the optimizer state of a piece from `state` to the arenas (to_arenas) or from the arenas
 * to `state`, one slot after the other. A slot that does not have one float per element is the
 * counter of updates: it is set to arenas->updates, and never copied to the arenas. */
static void copy_state(const Piece *p, float *state, const TableDenseState *arenas, bool to_arenas)
{
    float *at = state + p->state_at;
    size_t bytes = (size_t)p->elements * sizeof *at;
    for (int s = 0; s < p->row_state.slots; at += p->row_state.floats[s++]) {
        bool per_element = s < p->rule.slots && p->row_state.floats[s] == p->elements;
        if (!per_element) {
            if (!to_arenas) *at = (float)arenas->updates;
            continue;
        }
        float *slot = arenas->state[s] + arenas->at[p->param][s] + p->first;
        memcpy(to_arenas ? slot : at, to_arenas ? at : slot, bytes);
    }
}

void tables_dense_put(Tables *t, const TableDenseState *from)
{
    DensePart *d = t->dense;
    for (int o = 0; o < t->owners; ++o) {
        for (int i = 0; i < d->count; ++i) {
            const Piece *p = &d->piece[i];
            if (p->server != o) continue;
            memcpy(d->value + p->value_at, from->params + p->param_at,
                   (size_t)p->elements * sizeof *d->value);
            copy_state(p, d->state, from, false);
        }
        send_command(t, o, &(Command){.kind = COMMAND_DENSE_PUT});
        send_floats(t, t->first_owner + o, d->value, d->value_counts[o]);
        send_floats(t, t->first_owner + o, d->state, d->state_counts[o]);
    }
}

void tables_dense_get(Tables *t, const TableDenseState *to)
{
    DensePart *d = t->dense;
    dense_pull(t, to->params, true);
    for (int o = 0; o < t->owners; ++o) {
        send_request(t, o, COMMAND_DENSE_GET, true);
        receive_floats(t, t->first_owner + o, d->state, d->state_counts[o]);
        for (int i = 0; i < d->count; ++i)
            if (d->piece[i].server == o) copy_state(&d->piece[i], d->state, to, true);
    }
}

/* ---- server ---- */

static int server_number(const Tables *t)
{
    return t->plan.world->rank - t->first_owner;
}

static void update_rows(Tables *t, int from, const Command *what)
{
    const World *world = t->plan.world;
    const Bag *bag = &t->bag[what->bag];
    Owner *owner = &t->request_owner[what->bag];
    OwnerRequest *request = owner->request;
    (void)world_receive(world, from, request->count, (size_t)bag->tables * sizeof *request->count);
    owner_place_requests(owner, NULL);
    (void)world_receive(world, from, request->id, (size_t)what->ids * sizeof *request->id);
    receive_floats(t, from, request->grad, (int64_t)what->ids * bag->width);
    contents_changed(t);
    owner_find(owner);
    owner_sum_gradients(owner);
    owner_update(owner, what->lr, what->grad_scale);
}

static void update_dense(Tables *t, int from, const Command *what)
{
    DensePart *d = t->dense;
    int server = server_number(t);
    receive_floats(t, from, d->gradient, d->value_counts[server]);
    for (int i = 0; i < d->count; ++i) {
        const Piece *p = &d->piece[i];
        if (p->server != server) continue;
        double rate = p->rule.lr_ratio * (p->lr_scale > 0 ? p->lr_scale : 1);
        OptimRowArgs args = {.w = d->value + p->value_at,
                             .state = d->state + p->state_at,
                             .g = d->gradient + p->value_at,
                             .width = (int)p->elements,
                             .lr = (float)((double)(float)what->lr * rate),
                             .grad_scale = (float)what->grad_scale,
                             .decay = p->decay ? (float)p->rule.constants->weight_decay : 0};
        p->rule.table->row_update(&p->rule, &args);
    }
}

void async_serve(Tables *t, int from, const Command *what)
{
    DensePart *d = t->dense;
    int server = server_number(t);
    switch (what->kind) {
    case COMMAND_PUSH_NOW:
        update_rows(t, from, what);
        break;
    case COMMAND_DENSE_PULL:
        send_floats(t, from, d->value, d->value_counts[server]);
        break;
    case COMMAND_DENSE_PUSH:
        update_dense(t, from, what);
        break;
    case COMMAND_DENSE_PUT:
        receive_floats(t, from, d->value, d->value_counts[server]);
        receive_floats(t, from, d->state, d->state_counts[server]);
        break;
    case COMMAND_DENSE_GET:
        send_floats(t, from, d->state, d->state_counts[server]);
        break;
    case COMMAND_SYNC_POINT:
        t->waits[from] = true;
        if (++t->waiting < t->workers) break;
        t->waiting = 0;
        for (int a = 0; a < t->workers; ++a) {
            t->waits[a] = false;
            world_send(t->plan.world, a, &t->stops_replay, sizeof t->stops_replay);
        }
        break;
    default:
        die("rank %d sent command %d, which mode %s does not have", from, (int)what->kind,
            update_mode_names[t->plan.mode]);
    }
}
