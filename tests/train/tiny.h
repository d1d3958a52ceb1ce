/* For tests of training runs: small data sets, worlds of some of the program's ranks, and hashes of
 * all that a run has learned. */
#ifndef WEFT_TESTS_TINY_H
#define WEFT_TESTS_TINY_H

#include "next_step.h"
#include "train/trainer.h"

#include <hdf5.h>
#include <stdlib.h>

/* Writes a data set of n images (C,H,W). stored: type of the pixels in the file. memory: type of x.
 * y: class of each image. */
static inline void tiny_images(const char *path, hid_t stored, hid_t memory, const void *x,
                               const int32_t *y, int n, int c, int h, int w)
{
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hsize_t dx[4] = {(hsize_t)n, (hsize_t)c, (hsize_t)h, (hsize_t)w}, dy[1] = {(hsize_t)n};
    hid_t sx = H5Screate_simple(4, dx, NULL), sy = H5Screate_simple(1, dy, NULL);
    hid_t hx = H5Dcreate2(file, "/x", stored, sx, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t hy = H5Dcreate2(file, "/y", H5T_STD_I32LE, sy, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(hx, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, x);
    H5Dwrite(hy, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, y);
    H5Dclose(hx);
    H5Dclose(hy);
    H5Sclose(sx);
    H5Sclose(sy);
    H5Fclose(file);
}

/* Writes a data set of n images (C,H,W) of uint8. Each is the pattern of its class plus noise. */
static inline void tiny_data(const char *path, int n, int c, int h, int w, int classes)
{
    size_t pixels = (size_t)c * (size_t)h * (size_t)w;
    uint8_t *x = mem_new((size_t)n * pixels);
    int32_t *y = mem_new((size_t)n * sizeof *y);
    RngKey key = rng_key(7, RNG_TEST, (uint64_t)n, 0);
    for (int i = 0; i < n; ++i) {
        y[i] = (int32_t)(rng_u32(key, (uint64_t)i) % (uint32_t)classes);
        RngKey noise = rng_key(8, RNG_TEST, (uint64_t)i, 0),
               shape = rng_key(9, RNG_TEST, (uint64_t)y[i], 0);
        for (size_t k = 0; k < pixels; ++k) {
            float v = 160 * rng_uniform(shape, k) + 90 * rng_uniform(noise, k);
            x[(size_t)i * pixels + k] = (uint8_t)v;
        }
    }
    tiny_images(path, H5T_STD_U8LE, H5T_NATIVE_UINT8, x, y, n, c, h, w);
    mem_free(&x);
    mem_free(&y);
}

/* Writes an attribute of a file: `text` or, if that is NULL, `number`. */
static inline void tiny_attribute(hid_t file, const char *name, const char *text, int64_t number)
{
    hid_t space = H5Screate(H5S_SCALAR), type = H5Tcopy(text ? H5T_C_S1 : H5T_NATIVE_INT64);
    if (text) H5Tset_size(type, strlen(text) + 1);
    hid_t at = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(at, type, text ? (const void *)text : &number);
    H5Aclose(at);
    H5Tclose(type);
    H5Sclose(space);
}

/* Writes a data set of n tokens, from 0 to vocab - 1. Three of four tokens are a function of the
 * token before. */
static inline void tiny_tokens(const char *path, int64_t n, int vocab)
{
    uint16_t *token = mem_new((size_t)n * sizeof *token);
    RngKey key = rng_key(10, RNG_TEST, (uint64_t)n, 0);
    for (int64_t i = 1; i < n; ++i) {
        uint32_t draw = rng_u32(key, (uint64_t)i);
        token[i] = (uint16_t)((draw & 3 ? 5u * token[i - 1] + 3 : draw >> 2) % (uint32_t)vocab);
    }
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    tiny_attribute(file, "format", "weft-data", 0);
    tiny_attribute(file, "kind", "tokens", 0);
    tiny_attribute(file, "version", NULL, 1);
    tiny_attribute(file, "vocab", NULL, vocab);
    hsize_t dim[1] = {(hsize_t)n};
    hid_t space = H5Screate_simple(1, dim, NULL);
    hid_t set =
        H5Dcreate2(file, "/tokens", H5T_STD_U16LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, token);
    H5Dclose(set);
    H5Sclose(space);
    H5Fclose(file);
    mem_free(&token);
}

/* Waits for all ranks of the program. Ranks that are not in the grid of a test sleep here. */
static inline void tiny_barrier(void)
{
    world_barrier(&(World){.comm = MPI_COMM_WORLD});
}

/* Sends rank 0's bytes to all ranks of the program. */
static inline void tiny_bcast(void *data, size_t bytes)
{
    world_bcast(&(World){.comm = MPI_COMM_WORLD}, data, bytes, 0);
}

/* Makes a world of the first `size` ranks of the program. Returns false on other ranks. Collective
 * on all ranks of the program. */
static inline bool tiny_world(World *sub, int size)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    *sub =
        (World){.rank = rank, .size = size, .node_rank = rank, .node_size = size, .one_node = true};
    MPI_Comm_split(MPI_COMM_WORLD, rank < size ? 0 : MPI_UNDEFINED, rank, &sub->comm);
    if (sub->comm == MPI_COMM_NULL) return false;
    MPI_Comm_dup(sub->comm, &sub->node);
    if (size > 1) return true;
    MPI_Comm_free(&sub->node);
    MPI_Comm_free(&sub->comm);
    sub->comm = sub->node = MPI_COMM_NULL;
    return true;
}

static inline void tiny_world_fini(World *sub)
{
    if (sub->comm == MPI_COMM_NULL) return;
    MPI_Comm_free(&sub->comm);
    MPI_Comm_free(&sub->node);
}

/* Returns this rank's part of a tensor that belongs to a parameter. slot: -1: the parameter's
 * value; OPTIM_SLOTS: its average; other numbers: that slot of its optimizer state. */
static inline const float *tiny_own(Trainer *t, int param, int slot)
{
    int range = 0;
    if (slot < 0) return executor_param(t->executor, param);
    while (t->range_param[range] != param) ++range;
    const OptimPiece *piece = &t->optim->piece[range];
    if (slot == OPTIM_SLOTS) return t->optim->average + piece->average_offset;
    return t->optim->state[slot] + piece->state[slot];
}

/* Returns a complete tensor in stored order, gathered from the replicas if it is sharded. slot: as
 * in tiny_own. The caller owns it. Collective on the replicas. */
static inline float *tiny_tensor(Trainer *t, int param, int slot)
{
    int elements = (int)t->graph->param[param].elements;
    bool parts = slot < 0 ? t->plan->gathers : t->plan->zero > 0;
    int64_t first = 0, count = elements;
    if (parts) plan_shard(t->plan, param, t->grid.dp_rank, &first, &count);
    float *whole = mem_new((size_t)elements * sizeof *whole);
    if (count > 0) memcpy(whole + first, tiny_own(t, param, slot), (size_t)count * sizeof *whole);
    if (parts)
        MPI_Allreduce(MPI_IN_PLACE, whole, elements, MPI_UINT32_T, MPI_BOR, t->grid.dp_world.comm);
    return whole;
}

/* Returns a hash, never 0, of a tensor that belongs to a parameter, in plain order. slot: as in
 * tiny_own. Collective on the replicas. */
static inline uint64_t tiny_hash_tensor(Trainer *t, int param, int slot)
{
    const Param *p = &t->graph->param[param];
    size_t bytes = (size_t)shape_count(p->shape) * sizeof(float);
    float *stored = tiny_tensor(t, param, slot), *plain = mem_new(bytes);
    op_unpack(t->graph->node[p->node].op, p->slot, stored, plain);
    uint64_t hash = hash_bytes(plain, bytes);
    mem_free(&stored);
    mem_free(&plain);
    return hash ? hash : 1;
}

/* Returns a hash of all parameters, running statistics, optimizer state and averages, whichever
 * ranks have them. Returns 0 if two ranks that have the same tensor, or the same slice of a tensor,
 * differ. The result is the same on every rank. Collective. */
static inline uint64_t tiny_hash(Trainer *t)
{
    int params = t->graph->param_count, size = t->world->size;
    int slots = OPTIM_SLOTS + 1, kinds = params * (slots + 1);
    size_t count = (size_t)(kinds * t->shape.tp);
    uint64_t *mine = mem_new(count * sizeof *mine), hash = 14695981039346656037u;
    uint64_t *all = mem_new(count * (size_t)size * sizeof *all);
    for (int i = 0; i < params; ++i)
        for (int slot = -1; slot < slots && train_owns(t, i); ++slot) {
            const Param *p = &t->graph->param[i];
            int own = p->tied_param >= 0 ? p->tied_param : i;
            int slice = p->split.parts > 0 ? t->grid.tp_rank : 0;
            int used = p->info.is_statistic || p->frozen ? 0 : t->optim->rule[t->rule[i]].slots;
            bool averaged = slot == OPTIM_SLOTS && t->optim->average && !p->frozen;
            if (slot < used || averaged)
                mine[slice * kinds + (slot + 1) * params + own] = tiny_hash_tensor(t, i, slot);
        }
    world_allgather(t->world, mine, count * sizeof *mine, all);
    for (size_t i = 0; i < count && hash; ++i) {
        uint64_t one = 0;
        bool same = true;
        for (size_t r = 0; r < (size_t)size; ++r) {
            uint64_t here = all[r * count + i];
            same &= here == 0 || one == 0 || here == one;
            one = here ? here : one;
        }
        hash = same ? hash * 1099511628211u ^ one : 0;
        if (!same) printf("  ranks differ in %s\n", t->graph->param[i % (size_t)params].name);
    }
    mem_free(&mine);
    mem_free(&all);
    return hash;
}

/* Trains `steps` steps with the configuration `text` and key=value overrides, [count]. Returns
 * tiny_hash, or 0 after an error. losses: receives the loss of each step; may be NULL. Collective
 * on world. */
static inline uint64_t tiny_train(const World *world, const char *text, int count,
                                  char *const *overrides, int steps, double *losses)
{
    Config *config = NULL;
    Trainer *t = NULL;
    uint64_t hash = 0;
    Status st = config_parse(&config, "tiny.yaml", text, count, overrides);
    if (st == OK) st = trainer_new(&t, config, world);
    for (int i = 0; st == OK && i < steps; ++i) {
        StepResult result;
        st = next_step(t, &result);
        if (losses) losses[i] = result.loss;
    }
    if (st != OK)
        printf("  %s\n", fail_message());
    else
        hash = tiny_hash(t);
    trainer_free(&t);
    config_free(&config);
    return hash;
}

#endif
