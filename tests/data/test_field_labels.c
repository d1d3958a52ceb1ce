/* Label fields: classes, pixels without a label, names of classes, labels in the loader's batches;
 * what cannot be labels is refused by name; the hash of a set covers what its labels mean. */
#include "fixture.h"
#include "../../src/data/fields/fields_private.h"

enum { WORDS = 8, PIXELS = 8 * 16 };
static const char labels_nc[] = "tests/golden/fields/labels.nc";
static const char plain_h5[] = "tests/golden/fields/plain.h5";
static const char cover[] =
    "data.variables={inputs: [h, u], targets: [{name: cover, classes: 3, ignore: 200}]}";

/* Opens a file with up to three keys. */
static Status open_keys(DataSet *set, const char *path, const char *a, const char *b, const char *c)
{
    const char *key[] = {a, b, c};
    char *word[WORDS];
    int count = 0;
    Config *config = NULL;
    data_set_fini(set);
    config_use_words(data_words, DATA_WORDS);
    for (int i = 0; i < 3; ++i)
        if (key[i]) word[count++] = mem_text(key[i]);
    Status st = config_load(&config, NULL, count, word);
    if (st == OK) st = data_set_open(set, config, path);
    config_free(&config);
    for (int i = 0; i < count; ++i) mem_free(&word[i]);
    return st;
}

static void refused(const char *path, const char *a, const char *b, const char *why)
{
    DataSet *set = mem_new(sizeof *set);
    CHECK_FAILS(open_keys(set, path, a, b, NULL), ERR_CONFIG, why);
    data_set_fini(set);
    data_set_fini(set);
    mem_free(&set);
}

/* Classes of cover follow from h; _FillValue and ignore mean no label. */
static void values(void)
{
    DataSet *set = mem_new(sizeof *set);
    FieldReader *reader;
    float x[2 * PIXELS];
    int32_t label[PIXELS];
    CHECK_OK(open_keys(set, labels_nc, cover, NULL, NULL));
    CU_ASSERT(set->classes == 3 && set->target_width == 0 && data_has_label_fields(set));
    CU_ASSERT_EQUAL(data_labels_per_sample(set), PIXELS);
    const FieldClasses *classes = &set->field_set.classes;
    CU_ASSERT(classes->named && !strcmp(classes->name[0], "sea") &&
              !strcmp(classes->name[2], "ice"));
    CHECK_OK(field_reader_new(&reader, set));
    int wrong = 0, none = 0;
    for (int64_t s = 0; s < set->samples; ++s) {
        CHECK_OK(field_read(reader, s, false, x, NULL));
        CHECK_OK(field_read_sample_labels(reader, set, 0, s, label));
        for (int i = 0; i < PIXELS; ++i) {
            const bool unseen = (s == 3 && i < 16) || (i / 16 == 5 && i % 4 == 0);
            const int want = unseen ? -1 : (x[i] >= 0) + (x[i] >= 1);
            wrong += label[i] != want;
            none += label[i] < 0;
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(none, 12 * 4 + 16);
    field_reader_free(&reader);
    data_set_fini(set);
    data_set_fini(set);
    mem_free(&set);
}

/* Truth values are enumerations in HDF5: true is class 1, read directly or in chunks. */
static void truth_values(void)
{
    static const char *const name[] = {"wet", "packed_wet"};
    DataSet *set = mem_new(sizeof *set);
    FieldReader *reader;
    float x[2 * PIXELS];
    int32_t label[PIXELS];
    for (int k = 0; k < 2; ++k) {
        char *key =
            mem_format("data.variables={inputs: [x], targets: [{name: %s, classes: 2}]}", name[k]);
        CHECK_OK(open_keys(set, plain_h5, key, NULL, NULL));
        CHECK_OK(field_reader_new(&reader, set));
        for (int64_t s = 0; s < set->samples; s += 5) {
            CHECK_OK(field_read(reader, s, false, x, NULL));
            CHECK_OK(field_read_sample_labels(reader, set, 0, s, label));
            for (int i = 0; i < PIXELS; ++i) CU_ASSERT_EQUAL(label[i], x[i] < 0);
        }
        field_reader_free(&reader);
        mem_free(&key);
    }
    data_set_fini(set);
    data_set_fini(set);
    mem_free(&set);
}

/* The loader gives the labels that the reader reads, and statistics have no row for them. */
static void batches(void)
{
    DataSet *set = mem_new(sizeof *set);
    FieldStats *stats = mem_new(sizeof *stats);
    Config *config = NULL;
    Loader *loader;
    FieldReader *reader;
    const MicroBatch *batch;
    int32_t label[PIXELS];
    char *word[] = {mem_text("data.variables={inputs: [x], targets: [{name: y, classes: 3}]}")};
    config_use_words(data_words, DATA_WORDS);
    CHECK_OK(config_load(&config, NULL, 1, word));
    CHECK_OK(data_set_open(set, config, plain_h5));
    data_fields_list_stats(set, stats);
    CU_ASSERT_EQUAL(stats->count, 2);
    CU_ASSERT_EQUAL(data_fields_measured(set), 1);
    CHECK_OK(data_fields_measure(set, 1));
    CHECK_OK(field_reader_new(&reader, set));
    const LoaderPlan plan = {.batch = 4, .micro_batch = 4, .micro_count = 1, .slots = 2};
    CHECK_OK(loader_new(&loader, set, config, plan));
    int64_t samples = 0;
    while (loader_next(loader, &batch, NULL) == OK && batch) {
        for (int r = 0; r < batch->rows; ++r, ++samples) {
            CHECK_OK(field_read_sample_labels(reader, set, 0, batch->sample[r], label));
            CU_ASSERT(!memcmp(label, batch->labels + (ptrdiff_t)r * PIXELS, sizeof label));
        }
        CU_ASSERT_PTR_NULL(batch->targets);
        loader_release(loader);
    }
    CU_ASSERT_EQUAL(samples, 12);
    loader_free(&loader);
    field_reader_free(&reader);
    config_free(&config);
    mem_free(&word[0]);
    mem_free(&stats);
    data_set_fini(set);
    data_set_fini(set);
    mem_free(&set);
}

/* A value that is no class is an error with its file, variable, frame and place. */
static void bad_values(void)
{
    static const struct {
        const char *path, *variables, *why;
    } row[] = {
        {plain_h5, "data.variables={inputs: [x], targets: [{name: bad, classes: 3}]}",
         "plain.h5: bad is 3 at frame 2, row 1, column 4, but labels are whole numbers from 0 to "
         "2"},
        {plain_h5, "data.variables={inputs: [x], targets: [{name: y, classes: 2}]}", "y is 2 at"},
        {labels_nc, "data.variables={inputs: [u], targets: [{name: h, classes: 2}]}",
         "labels.nc: h is "},
        {labels_nc, "data.variables={inputs: [h], targets: [{name: cover, classes: 3}]}",
         "add ignore: 200"},
    };
    DataSet *set = mem_new(sizeof *set);
    for (size_t i = 0; i < sizeof row / sizeof *row; ++i) {
        CHECK_OK(open_keys(set, row[i].path, row[i].variables, NULL, NULL));
        CHECK_FAILS(data_set_check(set, 0), ERR_DATA, row[i].why);
    }
    CHECK_OK(open_keys(set, labels_nc,
                       "data.variables={inputs: [h], targets: [{name: mask, classes: 2}]}", NULL,
                       NULL));
    CHECK_OK(data_set_check(set, 0));
    CU_ASSERT_FALSE(set->field_set.classes.named);
    data_set_fini(set);
    data_set_fini(set);
    mem_free(&set);
}

static void bad_keys(void)
{
    refused(labels_nc, cover, "data.predict=change", "cover has labels, whose change is no number");
    refused(labels_nc, cover, "train.rollout=2", "cover has labels, and a step cannot read");
    refused(labels_nc, cover, "data.window={targets: [0, 1]}", "give one offset of targets");
    refused(labels_nc, cover, "data.label_base=1", "labels count from 0");
    refused(labels_nc, cover, "data.mask=mask", "losses on labels do not weight pixels");
    refused(labels_nc, cover, "train.latitude_weights=true", "remove this key");
    refused(labels_nc,
            "data.variables={inputs: [h], targets: [{name: cover, classes: 3, weight: 2}]}", NULL,
            "remove its weight");
    refused(labels_nc, "data.variables={inputs: [h], targets: [{name: cover, classes: 3}, u]}",
            NULL, "must be the only target: remove u");
    refused(labels_nc, "data.variables={inputs: [{name: h, classes: 3}], targets: [u]}", NULL,
            "classes is for targets");
    refused(labels_nc, "data.variables={inputs: [h], targets: [{name: cover, ignore: 3}]}", NULL,
            "ignore is for labels");
    refused(labels_nc, "data.variables={inputs: [h], targets: [{name: cover, classes: 257}]}", NULL,
            "must be from 2 to 256");
    refused(plain_h5, "data.variables={inputs: [y], targets: [{name: x, classes: 3}]}", NULL,
            "x has labels at 2 levels");
}

/* The fingerprint changes with the number of classes and with the value that means no label. */
static void hashes(void)
{
    static const char *const variables[] = {
        "data.variables={inputs: [h, u], targets: [{name: cover, classes: 3, ignore: 200}]}",
        "data.variables={inputs: [h, u], targets: [{name: cover, classes: 4, ignore: 200}]}",
        "data.variables={inputs: [h, u], targets: [{name: mask, classes: 3}]}",
        "data.variables={inputs: [h, u], targets: [{name: mask, classes: 3, ignore: 1}]}"};
    enum { SETS = sizeof variables / sizeof *variables };
    char text[SETS][DATA_FINGERPRINT], again[DATA_FINGERPRINT];
    DataSet *set = mem_new(sizeof *set);
    for (int i = 0; i < SETS; ++i) {
        CHECK_OK(open_keys(set, labels_nc, variables[i], NULL, NULL));
        CHECK_OK(data_set_fingerprint(set, text[i]));
        CHECK_OK(data_set_fingerprint(set, again));
        CU_ASSERT_STRING_EQUAL(text[i], again);
        for (int k = 0; k < i; ++k) CU_ASSERT_STRING_NOT_EQUAL(text[i], text[k]);
    }
    data_set_fini(set);
    data_set_fini(set);
    mem_free(&set);
}

TEST_MAIN("label fields", {"values", values}, {"truth values", truth_values}, {"batches", batches},
          {"bad values", bad_values}, {"bad keys", bad_keys}, {"hashes", hashes})
