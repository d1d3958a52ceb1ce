/* Measures the seconds in which ranks load a checkpoint of MB megabytes, and the bytes that each
 * rank reads and sends. The checkpoint has the tensors of a transformer: four matrices and eight
 * vectors per layer. If FILE does not exist, it is written first, and is then in the page cache.
 * Runs with or without mpirun.
 *
 * usage: load_bench FILE MB [stages] stages: each rank loads a part of the tensors instead of all
 * tensors */
#include "checkpoint.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 1024, LAYER_TENSORS = 12, TENSORS_MAX = 16384 };
static World world;
static CheckpointTensor tensor[TENSORS_MAX];
static float *copy[TENSORS_MAX];
static int count;
static bool stages;
/* bytes read by all threads of this rank; bytes sent to other ranks */
static _Atomic int64_t read_bytes;
static int64_t sent_bytes;

/* pread and the function of MPI below replace those of the libraries, and count bytes. */
ssize_t pread(int fd, void *data, size_t bytes, off_t offset)
{
    ssize_t (*real)(int, void *, size_t, off_t);
    *(void **)&real = dlsym(RTLD_NEXT, "pread");
    ssize_t got = real(fd, data, bytes, offset);
    if (got > 0) read_bytes += got;
    return got;
}

int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    sent_bytes += n;
    return PMPI_Isend(data, n, type, to, tag, comm, request);
}

static size_t tensor_bytes(int i)
{
    return (size_t)shape_count(tensor[i].shape) * sizeof(float);
}

static const float *get(void *user, int i, float *plain)
{
    (void)user;
    for (int64_t j = 0; j < shape_count(tensor[i].shape); ++j) plain[j] = (float)(i + j % 1000);
    return plain;
}

static float *place(void *user, int i)
{
    (void)user;
    return copy[i];
}

/* The receiver of a tensor. It does nothing, since the tensor has been read into the memory that
 * `place` returned. */
static void set(void *user, int i, const float *plain)
{
    (void)user;
    (void)i;
    (void)plain;
}

static bool wants(void *user, int i)
{
    (void)user;
    return !stages || (int64_t)i * world.size / count == world.rank;
}

static void make_tensors(double mb)
{
    static const int64_t rows[LAYER_TENSORS] = {3 * WIDTH, WIDTH, 4 * WIDTH, 4 * WIDTH, 1, 1,
                                                1,         1,     1,         1,         1, 1};
    for (double sum = 0; sum < mb * 1e6 && count < TENSORS_MAX; ++count) {
        int layer = count / LAYER_TENSORS, k = count % LAYER_TENSORS;
        tensor[count] = (CheckpointTensor){.path = mem_format("/params/h%04d.%02d", layer, k),
                                           .shape = {2, {rows[k], WIDTH, 1, 1}}};
        copy[count] = mem_pages_new(tensor_bytes(count));
        memset(copy[count], 1, tensor_bytes(count));
        sum += (double)tensor_bytes(count);
    }
}

static Status load(const char *path, const CheckpointIo *io)
{
    int64_t mine[2], *all = mem_new(2 * (size_t)world.size * sizeof *all);
    world_barrier(&world);
    sent_bytes = 0;
    const double begun = clock_s();
    Status status = checkpoint_load(&world, path, NULL, io);
    world_barrier(&world);
    const double seconds = clock_s() - begun;
    mine[0] = read_bytes;
    mine[1] = sent_bytes;
    world_allgather(&world, mine, sizeof mine, all);
    if (world.rank == 0 && status == OK) {
        printf("%.3f s; MB read and sent:", seconds);
        for (int r = 0; r < world.size; ++r)
            printf(" %.0f %.0f%s", (double)all[2 * r] * 1e-6, (double)all[2 * r + 1] * 1e-6,
                   r + 1 < world.size ? "," : "\n");
    }
    mem_free(&all);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 3 || world_init(&world, &argc, &argv) != OK) return 64;
    static char config[] = "run: {name: load}\n";
    CheckpointMeta meta = {.step = 1, .config = config, .grid = "1x1x1"};
    stages = argc > 3;
    make_tensors(atof(argv[2]));
    CheckpointIo io = {.count = count,
                       .tensor = tensor,
                       .get = get,
                       .set = set,
                       .place = place,
                       .wants = wants,
                       .sets_early = true};
    bool exists = world_min(&world, access(argv[1], F_OK) == 0);
    Status status = exists ? OK : checkpoint_save(&world, argv[1], &meta, &io);
    if (status == OK) status = load(argv[1], &io);
    if (status != OK && world.rank == 0) fprintf(stderr, "load_bench: %s\n", fail_message());
    world_fini(&world);
    return status;
}
