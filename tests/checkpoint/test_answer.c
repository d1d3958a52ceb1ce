/* Tests the answer of the process that reads a checkpoint: the parser returns what was written, and
 * refuses an answer that is cut short or contradicts itself. */
#include "checkpoint/fixture.h"

#include "checkpoint/tensor_table.h"

static char *answer;
static size_t length;
static const char *folder;
static char *path;

static void begin(void)
{
    folder = fixture_folder();
    path = fixture_path(folder, "step-00000001.h5");
    CHECK_OK(fixture_save(path, 1, 0));
    FILE *out = open_memstream(&answer, &length);
    tensor_table_read(path, strlen(path) + 1, out);
    fclose(out);
}

static void end(void)
{
    free(answer);
    mem_free(&path);
    fixture_clean(folder);
}

static Status take(StoredFile *file, const char *bytes, size_t count)
{
    CHECK_OK(stored_open_plain(file, path));
    return stored_take(file, bytes, count);
}

static void whole(void)
{
    StoredFile file;
    CheckpointMeta meta, want = fixture_meta(1);
    begin();
    CHECK_OK(take(&file, answer, length));
    CHECK_OK(stored_list(&file));
    CHECK_OK(stored_meta(&file, &meta));
    CU_ASSERT_EQUAL(file.count, FIXTURE_COUNT);
    CU_ASSERT_STRING_EQUAL(meta.config, want.config);
    CU_ASSERT_STRING_EQUAL(meta.data_train, want.data_train);
    CU_ASSERT(memcmp(&meta.data_ids, &want.data_ids, sizeof want.data_ids) == 0);
    for (int i = 0; i < FIXTURE_COUNT; ++i) {
        const StoredTensor *t = stored_find(&file, fixture_tensor[i].path);
        CU_ASSERT(t && t->has_hash && shape_equal(t->shape, fixture_tensor[i].shape));
    }
    checkpoint_meta_fini(&meta);
    stored_close(&file);
    end();
}

static void cut(void)
{
    begin();
    for (size_t n = 0; n < length; ++n) {
        StoredFile file;
        CHECK_FAILS(take(&file, answer, n), ERR_DATA, "HDF5's answer about it is impossible");
        stored_close(&file);
    }
    end();
}

/* If any byte of the answer is altered, the parser refuses it, or all tensors are still inside the
 * file. */
static void altered(void)
{
    int taken = 0, refused = 0;
    begin();
    for (size_t n = 0; n < length; ++n)
        for (int bit = 0; bit < 8; bit += 7) {
            StoredFile file;
            answer[n] = (char)(answer[n] ^ 1 << bit);
            bool good = take(&file, answer, length) == OK;
            ++*(good ? &taken : &refused);
            if (good)
                CU_ASSERT(file.meta.loss_count >= 0 && file.meta.loss_count <= CHECKPOINT_LOSSES);
            for (int i = 0; good && i < file.count; ++i) {
                const StoredTensor *t = &file.tensor[i];
                int64_t bytes = shape_count(t->shape) * (int64_t)sizeof(float);
                CU_ASSERT(bytes >= 0 && t->offset >= -1);
                if (t->offset >= 0) CU_ASSERT(t->offset + bytes <= file.bytes);
                CU_ASSERT(bytes / INFLATE_RATIO_MAX <= file.bytes);
            }
            stored_close(&file);
            answer[n] = (char)(answer[n] ^ 1 << bit);
        }
    CU_ASSERT(taken > 0 && refused > 0);
    end();
}

TEST_MAIN("answer", {"whole", whole}, {"cut", cut}, {"altered", altered})
