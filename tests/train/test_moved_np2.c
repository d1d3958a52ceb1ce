/* Tests runs that resume after their data has moved to another path, format or array name: on one
 * rank and on two, they end with the bits of a run that was never interrupted. If the same path
 * holds other data, resuming is refused. */
#include "tiny_main.h"

#include <fcntl.h>
#include <math.h>

enum { SAMPLES = 24, CLASSES = 4, SIDE = 6, TOKENS = 400, VOCAB = 50 };
#define STEPS "train.steps=6 checkpoint.every_steps=3 checkpoint.keep=0"
#define LAST  "checkpoints/step-00000006.h5"

static char *in_folder(const char *name)
{
    return mem_format("%s/%s", tiny_folder, name);
}

/* Trains a run on the first `ranks` ranks and discards its output. more: overrides "a=b c=d", in
 * which {} stands for the temporary folder. Returns the run's status on ranks that take part, and
 * OK on other ranks. Collective on MPI_COMM_WORLD. */
static Status run_on(int ranks, const char *name, const char *model, const char *more)
{
    World sub;
    Status status = OK;
    char *text = mem_format("run: {seed: 3, dir: %s, name: %s}\n"
                            "model: {%s}\n"
                            "train: {batch: 8, micro_batch: 2, threads: 1}\noptim: {lr: 0.05}\n",
                            tiny_folder, name, model);
    char *words[16], *copy = mem_text(more), *rest = copy;
    int count = 0;
    for (char *word, *sign; (word = strsep(&rest, " "));)
        if (*word)
            words[count++] =
                (sign = strstr(word, "{}"))
                    ? mem_format("%.*s%s%s", (int)(sign - word), word, tiny_folder, sign + 2)
                    : mem_text(word);
    if (tiny_world(&sub, ranks)) {
        Config *config = NULL;
        CHECK_OK(config_parse(&config, "run.yaml", text, count, words));
        fflush(stdout);
        int out = dup(1), nothing = open("/dev/null", O_WRONLY);
        dup2(nothing, 1);
        if (config) status = train_run(config, &sub);
        fflush(stdout);
        dup2(out, 1);
        close(out);
        close(nothing);
        config_free(&config);
    }
    tiny_world_fini(&sub);
    while (count > 0) mem_free(&words[--count]);
    mem_free(&copy);
    mem_free(&text);
    tiny_barrier();
    return status;
}

static const char *const lenet_like = "layers: [flatten, dense: {width: 4}]";
static const char *const gpt_like =
    "name: gpt2, layers: 1, width: 8, heads: 2, context: 8, vocab: 50";

/* Removes the last checkpoint of a run, so that the next call resumes in the middle. */
static void cut(const char *name)
{
    if (tiny_rank == 0) {
        char *last = mem_format("%s/%s/" LAST, tiny_folder, name);
        CU_ASSERT_EQUAL(unlink(last), 0);
        mem_free(&last);
    }
    tiny_barrier();
}

static bool same_end(const char *a, const char *b)
{
    char *pa = mem_format("%s/%s/" LAST, tiny_folder, a),
         *pb = mem_format("%s/%s/" LAST, tiny_folder, b);
    bool equal = true;
    if (tiny_rank == 0) {
        FILE *nothing = fopen("/dev/null", "w");
        CHECK_OK(checkpoint_diff(pa, pb, nothing, &equal));
        fclose(nothing);
    }
    mem_free(&pa);
    mem_free(&pb);
    return equal;
}

static void make_images(const char *name)
{
    char *path = in_folder(name);
    if (tiny_rank == 0) tiny_data(path, SAMPLES, 1, SIDE, SIDE, CLASSES);
    mem_free(&path);
    tiny_barrier();
}

static void move(const char *from, const char *to)
{
    char *a = in_folder(from), *b = in_folder(to);
    if (tiny_rank == 0) CU_ASSERT_EQUAL(rename(a, b), 0);
    mem_free(&a);
    mem_free(&b);
    tiny_barrier();
}

/* Copies one array of the file `from` to the file `to`, in compressed chunks and under another
 * name. */
static void pack(hid_t from, const char *array, hid_t to, const char *name)
{
    hid_t old = H5Dopen2(from, array, H5P_DEFAULT), type = H5Dget_type(old);
    hid_t space = H5Dget_space(old), create = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t dim[4];
    int ndim = H5Sget_simple_extent_dims(space, dim, NULL);
    char *all = mem_new((size_t)H5Sget_simple_extent_npoints(space) * H5Tget_size(type));
    H5Dread(old, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, all);
    dim[0] = 5;
    H5Pset_chunk(create, ndim, dim);
    H5Pset_deflate(create, 1);
    hid_t new = H5Dcreate2(to, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT);
    CU_ASSERT(H5Dwrite(new, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) >= 0);
    mem_free(&all);
    H5Dclose(new);
    H5Dclose(old);
    H5Pclose(create);
    H5Sclose(space);
    H5Tclose(type);
}

static void make_packed(const char *from, const char *to)
{
    char *a = in_folder(from), *b = in_folder(to);
    if (tiny_rank == 0) {
        hid_t old = H5Fopen(a, H5F_ACC_RDONLY, H5P_DEFAULT);
        hid_t new = H5Fcreate(b, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        pack(old, "/x", new, "pixels");
        pack(old, "/y", new, "kinds");
        H5Fclose(old);
        H5Fclose(new);
    }
    mem_free(&a);
    mem_free(&b);
    tiny_barrier();
}

/* Changes `count` labels of a file, beginning with sample `first`. */
static void change_labels(const char *name, int first, int count)
{
    char *path = in_folder(name);
    if (tiny_rank == 0) {
        int32_t y[SAMPLES];
        hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        hid_t set = H5Dopen2(file, "/y", H5P_DEFAULT);
        H5Dread(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, y);
        for (int i = first; i < first + count; ++i) y[i] = (y[i] + 1) % CLASSES;
        CU_ASSERT(H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, y) >= 0);
        H5Dclose(set);
        H5Fclose(file);
    }
    mem_free(&path);
    tiny_barrier();
}

static void test_moved(void)
{
    make_images("a.h5");
    make_packed("a.h5", "packed.h5");
    CHECK_OK(run_on(2, "whole", lenet_like, STEPS " data.train={}/a.h5 data.test={}/a.h5"));
    for (int ranks = 1; ranks <= 2; ++ranks) {
        char *name = mem_format("moved%d", ranks);
        CHECK_OK(
            run_on(3 - ranks, name, lenet_like, STEPS " data.train={}/a.h5 data.test={}/a.h5"));
        cut(name);
        move("a.h5", "b.h5");
        CHECK_OK(run_on(ranks, name, lenet_like, STEPS " data.train={}/b.h5 data.test={}/b.h5"));
        CU_ASSERT(same_end("whole", name));
        cut(name);
        move("b.h5", "a.h5");
        CHECK_OK(run_on(ranks, name, lenet_like,
                        STEPS " data.train={}/packed.h5 data.test={}/packed.h5 data.x=/pixels "
                              "data.y=/kinds"));
        CU_ASSERT(same_end("whole", name));
        mem_free(&name);
    }
}

static void test_tokens_moved(void)
{
    char *path = in_folder("t.h5"), *different = in_folder("t2.h5");
    if (tiny_rank == 0) tiny_tokens(path, TOKENS, VOCAB);
    if (tiny_rank == 0) tiny_tokens(different, TOKENS + 1, VOCAB);
    tiny_barrier();
    CHECK_OK(run_on(1, "words", gpt_like, STEPS " data.train={}/t.h5"));
    CHECK_OK(run_on(2, "words2", gpt_like, STEPS " data.train={}/t.h5"));
    cut("words2");
    move("t.h5", "t1.h5");
    Status status = run_on(2, "words2", gpt_like, STEPS " data.train={}/t2.h5");
    CHECK_FAILS(status, ERR_DATA, "401 tokens uint16, xxh3-1 ");
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "it was 400 tokens uint16, xxh3-1 "));
    CHECK_OK(run_on(2, "words2", gpt_like, STEPS " data.train={}/t1.h5"));
    CU_ASSERT(same_end("words", "words2"));
    mem_free(&path);
    mem_free(&different);
}

/* Tests that other data at the same path are refused, even if only one label differs. A new run may
 * start from the old run's checkpoint. */
static void test_other_data(void)
{
    for (int ranks = 1; ranks <= 2; ++ranks) {
        char *name = mem_format("other%d", ranks), *next = mem_format("next%d", ranks);
        char *from = mem_format(STEPS " data.train={}/c.h5 checkpoint.resume={}/other%d/"
                                      "checkpoints/step-00000003.h5",
                                ranks);
        make_images("c.h5");
        CHECK_OK(run_on(3 - ranks, name, lenet_like, STEPS " data.train={}/c.h5"));
        cut(name);
        change_labels("c.h5", 17, 1);
        Status status = run_on(ranks, name, lenet_like, STEPS " data.train={}/c.h5");
        if (tiny_rank < ranks) {
            CHECK_FAILS(status, ERR_DATA, "c.h5: holds other data than this run was trained on");
            CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "24x1x6x6 uint8, labels 24 int32, xxh3"));
            CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "checkpoint.resume="));
        }
        CHECK_OK(run_on(ranks, next, lenet_like, from));
        mem_free(&from);
        mem_free(&next);
        mem_free(&name);
    }
}

static double best_of(const char *name)
{
    CheckpointMeta meta = {.best_metric = NAN};
    char *path = mem_format("%s/%s/" LAST, tiny_folder, name);
    CHECK_OK(checkpoint_read_meta(path, &meta));
    double best = meta.best_metric;
    CU_ASSERT_STRING_NOT_EQUAL(meta.data_train, "");
    checkpoint_meta_fini(&meta);
    mem_free(&path);
    return best;
}

/* Tests that other test data change no step. The best evaluation so far was made with the old data
 * and no longer counts. */
static void test_other_test_data(void)
{
    const char *more =
        STEPS " optim.lr=0.3 train.eval_every=1 data.train={}/d.h5 data.test={}/d.h5";
    const char *other =
        STEPS " optim.lr=0.3 train.eval_every=1 data.train={}/d.h5 data.test={}/e.h5";
    make_images("d.h5");
    make_images("e.h5");
    /* predictions that are right for d.h5 are wrong for e.h5 */
    change_labels("e.h5", 0, SAMPLES);
    for (int ranks = 1; ranks <= 2; ++ranks) {
        char *name = mem_format("tested%d", ranks);
        CHECK_OK(run_on(ranks, name, lenet_like, more));
        double before = tiny_rank == 0 ? best_of(name) : 1;
        CU_ASSERT(before > 0.5);
        cut(name);
        CHECK_OK(run_on(ranks, name, lenet_like, other));
        double after = tiny_rank == 0 ? best_of(name) : 0;
        CU_ASSERT(after < 0.5);
        cut(name);
        CHECK_OK(run_on(ranks, name, lenet_like, more));
        CU_ASSERT(tiny_rank > 0 || best_of(name) == before);
        mem_free(&name);
    }
}

/* Tests a checkpoint of an older version, which does not describe its data: the path is compared
 * instead. */
static void test_older_checkpoint(void)
{
    make_images("f.h5");
    CHECK_OK(run_on(2, "older", lenet_like, STEPS " data.train={}/f.h5"));
    cut("older");
    if (tiny_rank == 0) {
        char *path = in_folder("older/checkpoints/step-00000003.h5");
        hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        CU_ASSERT(H5Adelete(file, "data_train") >= 0);
        H5Fclose(file);
        mem_free(&path);
    }
    move("f.h5", "g.h5");
    Status status = run_on(2, "older", lenet_like, STEPS " data.train={}/g.h5");
    CHECK_FAILS(status, ERR_CONFIG, "data.train: ");
    move("g.h5", "f.h5");
    CHECK_OK(run_on(2, "older", lenet_like, STEPS " data.train={}/f.h5"));
    if (tiny_rank == 0) CU_ASSERT(isnan(best_of("older")));
}

static void prepare(void) {}

TINY_MAIN("moved", prepare, {"data that have moved", test_moved},
          {"tokens that have moved", test_tokens_moved}, {"other data", test_other_data},
          {"other test data", test_other_test_data},
          {"a checkpoint of an older weft", test_older_checkpoint})
