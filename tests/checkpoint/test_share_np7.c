/* Tests that each tensor is read once in the job and sent to all ranks that want it. The cases have
 * 2, 3, 4 and 7 ranks, nodes of one, two and seven ranks, and several choices of wanted tensors.
 * Reads, opens and messages are counted. A tensor that cannot be read is set on no rank; all others
 * are set on all ranks that want them. */
#include "checkpoint/fixture.h"
#include "parallel/mpi_main.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>

/* the ranks that take part in a case */
static World world;
static char folder[64];

/* Replace pread and open: count bytes read and files opened. pread fails if broken_read is true,
 * open if broken_open is true. */
static _Atomic int64_t read_bytes;
static int opens;
static bool broken_read, broken_open;

ssize_t pread(int fd, void *data, size_t bytes, off_t offset)
{
    ssize_t (*real)(int, void *, size_t, off_t);
    *(void **)&real = dlsym(RTLD_NEXT, "pread");
    if (broken_read) {
        errno = EIO;
        return -1;
    }
    ssize_t got = real(fd, data, bytes, offset);
    if (got > 0) read_bytes += got;
    return got;
}

int open(const char *path, int flags, ...)
{
    int (*real)(const char *, int, ...);
    *(void **)&real = dlsym(RTLD_NEXT, "open");
    va_list more;
    va_start(more, flags);
    int mode = flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    bool ours = *folder && strncmp(path, folder, strlen(folder)) == 0;
    opens += ours;
    if (!ours || !broken_open) return real(path, flags, mode);
    errno = ENOENT;
    return -1;
}

/* Replaces MPI_Isend: counts bytes of multicasts (sent_bytes), and those sent to another node
 * (left_bytes). */
static int64_t sent_bytes, left_bytes;
static int node_width;

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    sent_bytes += count;
    if (to / node_width != world.rank / node_width) left_bytes += count;
    return PMPI_Isend(data, count, type, to, tag, comm, request);
}

/* ---- tensors ---- */

enum { COUNT = 14 };
/* the first tensor is sent in two pieces if there are two ranks, in three if there are seven */
static const CheckpointTensor tensor[COUNT] = {
    {.path = "/params/a", .shape = {1, {1200001, 1, 1, 1}}},
    {.path = "/params/b", .shape = {2, {10, 33, 1, 1}}},
    {.path = "/params/c", .shape = {1, {1, 1, 1, 1}}},
    {.path = "/params/d", .shape = {2, {512, 512, 1, 1}}},
    {.path = "/params/e", .shape = {2, {0, 5, 1, 1}}},
    {.path = "/params/f", .shape = {4, {33, 7, 3, 3}}},
    {.path = "/params/g", .shape = {1, {1000, 1, 1, 1}}},
    {.path = "/params/h", .shape = {1, {1001, 1, 1, 1}}},
    {.path = "/params/i", .shape = {1, {1002, 1, 1, 1}}},
    {.path = "/params/j", .shape = {1, {77, 1, 1, 1}}},
    {.path = "/params/k", .shape = {1, {78, 1, 1, 1}}},
    {.path = "/params/l", .shape = {1, {79, 1, 1, 1}}},
    {.path = "/params/m", .shape = {1, {80, 1, 1, 1}}},
    {.path = "/params/n", .shape = {1, {262145, 1, 1, 1}}},
};

static int64_t bytes_of(int i)
{
    return shape_count(tensor[i].shape) * (int64_t)sizeof(float);
}

/* Returns the values of tensor i. They are computed at the first call. */
static const float *values(int i)
{
    static float *all[COUNT];
    if (!all[i]) {
        all[i] = malloc((size_t)bytes_of(i) + 1);
        for (int64_t j = 0; j < shape_count(tensor[i].shape); ++j)
            all[i][j] = (float)((i + 1) * 1000 + j % 997) + (float)(j / 997) * 0.25f;
    }
    return all[i];
}

/* Tensors that a rank wants: all, those of its stage, an arbitrary subset, none, or all on the last
 * rank and none on the others. */
typedef enum Want { ALL, STAGES, SOME, NOBODY, LAST, WANTS } Want;

static bool rank_wants(Want want, int rank, int i)
{
    switch (want) {
    case ALL:
        return true;
    case STAGES:
        return i % world.size == rank;
    case SOME:
        return (i * 7 + rank * 5 + i * rank) % 3 == 0;
    case LAST:
        return rank == world.size - 1;
    default:
        return false;
    }
}

typedef struct Taken {
    Want want;
    int sets[COUNT], places[COUNT];
    int64_t bad;
} Taken;

static bool wants(void *user, int i)
{
    return rank_wants(((Taken *)user)->want, world.rank, i);
}

static const float *get(void *user, int i, float *plain)
{
    (void)user;
    return memcpy(plain, values(i), (size_t)bytes_of(i));
}

/* Returns the memory into which tensor i is read. Every second tensor has such memory; NULL for the
 * others. */
static float *place(void *user, int i)
{
    static float room[COUNT][262145];
    Taken *t = user;
    ++t->places[i];
    t->bad += !rank_wants(t->want, world.rank, i);
    return i % 2 ? room[i] : NULL;
}

static void set(void *user, int i, const float *plain)
{
    Taken *t = user;
    ++t->sets[i];
    if (i % 2 && t->places[i]) t->bad += plain != place(t, i);
    t->bad += memcmp(plain, values(i), (size_t)bytes_of(i)) != 0;
}

static CheckpointIo io_of(Taken *t, Want want)
{
    *t = (Taken){.want = want};
    return (CheckpointIo){.count = COUNT,
                          .tensor = tensor,
                          .user = t,
                          .get = get,
                          .set = set,
                          .place = place,
                          .wants = wants,
                          .sets_early = true};
}

/* Checks that this rank has set each tensor that it wants once, and no other tensor. missing: bit
 * set of tensors that no rank may set. */
static void expect_set(const Taken *t, unsigned missing)
{
    int off = 0;
    for (int i = 0; i < COUNT; ++i)
        off += t->sets[i] != (!(missing >> i & 1) && rank_wants(t->want, world.rank, i));
    CU_ASSERT_EQUAL(off, 0);
    CU_ASSERT_EQUAL(t->bad, 0);
}

static int64_t sum_of(int64_t mine)
{
    world_allreduce(&world, &mine, 1);
    return mine;
}

/* ---- cases on several worlds ---- */

static void save(const char *path)
{
    Taken t;
    CheckpointIo io = io_of(&t, ALL);
    CheckpointMeta meta = fixture_meta(5);
    World alone = world_alone();
    if (world.rank == 0) CHECK_OK(checkpoint_save(&alone, path, &meta, &io));
    world_barrier(&world);
}

/* Runs a case on the first `ranks` ranks, on nodes of node_width ranks. */
static void on_ranks(int ranks, void (*run)(const char *path))
{
    bool in = test_world.rank < ranks;
    CHECK_OK(world_split(&world, &test_world, in ? 0 : 1));
    if (in) {
        MPI_Comm_free(&world.node);
        world = world_of_nodes(world, node_width);
        if (world.rank == 0) snprintf(folder, sizeof folder, "%s", fixture_folder());
        world_bcast(&world, folder, sizeof folder, 0);
        char *path = fixture_path(folder, "a.h5");
        save(path);
        run(path);
        world_barrier(&world);
        if (world.rank == 0) fixture_clean(folder);
        *folder = 0;
        mem_free(&path);
    }
    world_part_fini(&world);
    world_barrier(&test_world);
}

static void on_all(void (*run)(const char *path))
{
    static const int ranks[] = {2, 3, 4, 7}, widths[] = {1, 2, 7};
    for (int n = 0; n < 4; ++n)
        for (int w = 0; w < 3; ++w) {
            node_width = widths[w];
            on_ranks(ranks[n], run);
        }
}

/* Returns the bytes that multicasts send: for each tensor a flag of one byte, and its values if it
 * is not in `missing`. nodes: only bytes between nodes are counted. */
static int64_t bytes_passed(Want want, bool nodes, unsigned missing)
{
    int64_t sum = 0;
    for (int i = 0; i < COUNT; ++i) {
        int members = 0;
        for (int r = 0, last = -1; r < world.size; ++r) {
            if (!rank_wants(want, r, i) || (nodes && r / node_width == last)) continue;
            last = r / node_width;
            ++members;
        }
        if (members > 1) sum += (members - 1) * ((missing >> i & 1 ? 0 : bytes_of(i)) + 1);
    }
    return sum;
}

static void load_each(const char *path)
{
    int64_t file = 0;
    for (int i = 0; i < COUNT; ++i) file += bytes_of(i);
    for (int want = 0; want < WANTS; ++want) {
        Taken t;
        CheckpointIo io = io_of(&t, (Want)want);
        read_bytes = sent_bytes = left_bytes = 0;
        CHECK_OK(checkpoint_load(&world, path, NULL, &io));
        expect_set(&t, 0);
        int64_t have = 0;
        for (int i = 0; i < COUNT; ++i) {
            CU_ASSERT_EQUAL(t.places[i] > 0, rank_wants((Want)want, world.rank, i));
            have += rank_wants((Want)want, world.rank, i) ? bytes_of(i) + 1 : 0;
        }
        CU_ASSERT(sent_bytes <= 2 * have);
        CU_ASSERT_EQUAL(sum_of(read_bytes), file);
        CU_ASSERT_EQUAL(sum_of(sent_bytes), bytes_passed((Want)want, false, 0));
        CU_ASSERT_EQUAL(sum_of(left_bytes), bytes_passed((Want)want, true, 0));
        /* if sets_early is false, all tensors are verified before any is set, and then read
         * again */
        io = io_of(&t, (Want)want);
        io.sets_early = false;
        read_bytes = 0;
        CHECK_OK(checkpoint_load(&world, path, NULL, &io));
        expect_set(&t, 0);
        for (int i = 0; i < COUNT; ++i) CU_ASSERT_EQUAL(t.places[i], 0);
        CU_ASSERT_EQUAL(sum_of(read_bytes), 2 * file);
    }
}

static void test_once(void)
{
    on_all(load_each);
}

/* If only one tensor is loaded, only one rank opens the file. */
static void load_one(const char *path)
{
    Taken t;
    CheckpointIo io = io_of(&t, ALL);
    CheckpointMeta meta = fixture_meta(5);
    World alone = world_alone();
    io.count = 1;
    if (world.rank == 0) CHECK_OK(checkpoint_save(&alone, path, &meta, &io));
    world_barrier(&world);
    opens = 0;
    CHECK_OK(checkpoint_load(&world, path, NULL, &io));
    CU_ASSERT_EQUAL(t.sets[0], 1);
    CU_ASSERT_EQUAL(t.bad, 0);
    CU_ASSERT(world.rank == 0 ? opens > 0 : opens == 0);
}

static void test_opens(void)
{
    on_all(load_one);
}

/* Damages the last value of tensor i. */
static void damage(const char *path, int i)
{
    if (world.rank == 0) {
        hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        hid_t of = H5Dopen2(file, tensor[i].path, 0);
        off_t at = (off_t)H5Dget_offset(of) + (off_t)bytes_of(i) - 4;
        H5Dclose(of);
        H5Fclose(file);
        FILE *bytes = fopen(path, "r+");
        fseek(bytes, at, SEEK_SET);
        fputc('x', bytes);
        fputc('y', bytes);
        fclose(bytes);
    }
    world_barrier(&world);
}

/* The first damaged tensor is reported, whichever rank reads it. */
static void load_damaged(const char *path)
{
    static const int one[] = {0, 1, 5, 9, 13}, other[] = {1, 5, 6, 13, 13};
    for (size_t pair = 0; pair < sizeof one / sizeof *one; ++pair) {
        int i = one[pair], next = other[pair];
        damage(path, i);
        damage(path, next);
        for (int want = 0; want < WANTS; ++want) {
            Taken t;
            CheckpointIo io = io_of(&t, (Want)want);
            unsigned missing = 1U << i | 1U << next;
            char *name = mem_format("tensor %s does not match", tensor[i].path);
            sent_bytes = 0;
            CHECK_FAILS(checkpoint_load(&world, path, NULL, &io), ERR_DATA, name);
            expect_set(&t, missing);
            CU_ASSERT_EQUAL(sum_of(sent_bytes), bytes_passed((Want)want, false, missing));
            io = io_of(&t, (Want)want);
            io.sets_early = false;
            CHECK_FAILS(checkpoint_load(&world, path, NULL, &io), ERR_DATA, "does not match");
            for (int k = 0; k < COUNT; ++k) CU_ASSERT_EQUAL(t.sets[k], 0);
            mem_free(&name);
        }
        save(path);
    }
}

static void test_damage(void)
{
    node_width = 2;
    on_ranks(3, load_damaged);
    on_ranks(7, load_damaged);
}

/* One rank cannot read, or cannot open the file: all ranks get its message, and none hangs. */
static void load_broken(const char *path)
{
    for (int rank = 0; rank < world.size; ++rank) {
        Taken t;
        CheckpointIo io = io_of(&t, ALL);
        int64_t mine = 0;
        read_bytes = 0;
        CHECK_OK(checkpoint_load(&world, path, NULL, &io));
        mine = read_bytes;
        io = io_of(&t, ALL);
        broken_read = world.rank == rank;
        CHECK_FAILS(checkpoint_load(&world, path, NULL, &io), ERR_IO, "Input/output error");
        broken_read = false;
        char *rank_text = mem_format("rank %d: ", rank);
        CU_ASSERT(rank == 0 || strstr(fail_message(), rank_text));
        int64_t lost = 0;
        for (int i = 0; i < COUNT; ++i) lost += t.sets[i] ? 0 : bytes_of(i);
        CU_ASSERT_EQUAL(t.bad, 0);
        world_bcast(&world, &mine, sizeof mine, rank);
        CU_ASSERT_EQUAL(lost, mine);
        io = io_of(&t, ALL);
        broken_open = rank > 0 && world.rank == rank;
        if (rank > 0) {
            CHECK_FAILS(checkpoint_load(&world, path, NULL, &io), ERR_NOINPUT, rank_text);
            for (int i = 0; i < COUNT; ++i) CU_ASSERT_EQUAL(t.sets[i], 0);
        }
        broken_open = false;
        mem_free(&rank_text);
    }
}

static void test_broken(void)
{
    on_all(load_broken);
}

MPI_TEST_MAIN("share_np7", 7, {"once in the job", test_once}, {"who reads opens", test_opens},
              {"damage", test_damage}, {"a host that cannot read", test_broken})
