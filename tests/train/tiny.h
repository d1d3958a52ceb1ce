/* Small data sets and sub-worlds for tests of whole runs. */
#ifndef WEFT_TESTS_TINY_H
#define WEFT_TESTS_TINY_H

#include "train.h"

#include <hdf5.h>
#include <stdlib.h>

/* n images (C,H,W) of `classes` classes: a pattern of the class plus noise, uint8. */
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
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hsize_t dx[4] = {(hsize_t)n, (hsize_t)c, (hsize_t)h, (hsize_t)w}, dy[1] = {(hsize_t)n};
    hid_t sx = H5Screate_simple(4, dx, NULL), sy = H5Screate_simple(1, dy, NULL);
    hid_t hx = H5Dcreate2(file, "/x", H5T_STD_U8LE, sx, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t hy = H5Dcreate2(file, "/y", H5T_STD_I32LE, sy, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(hx, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, x);
    H5Dwrite(hy, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, y);
    H5Dclose(hx);
    H5Dclose(hy);
    H5Sclose(sx);
    H5Sclose(sy);
    H5Fclose(file);
    mem_free(&x);
    mem_free(&y);
}

/* The first `size` ranks of MPI_COMM_WORLD as a world of their own; false on ranks outside it. Collective on the world. */
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

/* Hash over every parameter and running statistic in plain order, and over the optimizer's state. */
static inline uint64_t tiny_hash(Trainer *t)
{
    uint64_t hash = 0;
    for (int slot = -1; slot < t->optim->table->slots; ++slot)
        for (int i = 0; i < t->graph->param_count; ++i) {
            const Param *p = &t->graph->param[i];
            if (slot >= 0 && p->info.buffer) continue;
            size_t bytes = (size_t)shape_count(p->shape) * sizeof(float);
            float *plain = mem_new(bytes);
            param_get(t->graph, i, slot < 0 ? executor_params(t->executor) : t->optim->state[slot],
                      plain);
            hash = hash * 1099511628211u ^ hash_bytes(plain, bytes);
            mem_free(&plain);
        }
    return hash;
}

/* Trains `steps` steps of a config text and returns the hash; losses, where given, gets each step's loss. */
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
        st = train_step(t, &result);
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
