/* What the process that reads strangers' files tells: it may have been taken over. The first byte
 * says of what kind of file. */
#include "fuzz.h"
#include "checkpoint/stored.h"
#include "data/data_private.h"
#include "data/facts.h"

static void checkpoint_answer(const uint8_t *data, size_t size)
{
    StoredFile file = {.path = "strange.h5", .fd = -1, .id = -1, .bytes = 1 << 20};
    CheckpointMeta meta = {0};
    if (stored_take(&file, (const char *)data, size) == OK && stored_list(&file) == OK) {
        (void)stored_meta(&file, &meta);
        for (int i = 0; i < file.count; ++i)
            if (!stored_find(&file, file.tensor[i].path)) die("a tensor is lost");
    }
    checkpoint_meta_fini(&meta);
    stored_close(&file);
}

static void data_answer(const uint8_t *data, size_t size)
{
    FactsAsk ask = {"strange.h5", "/x", "/y"};
    SetFacts *facts = mem_new(sizeof *facts);
    memcpy(facts, data, size < sizeof *facts ? size : sizeof *facts);
    if (facts_check(&ask, facts) == OK && facts->parts > FACTS_X) {
        const DataArray *x = &facts->x;
        int64_t bytes = (int64_t)element_bytes(x->type);
        for (int i = 0; i < SHAPE_DIMS; ++i) bytes *= x->dim[i];
        if (bytes < 1 || bytes + x->offset < 0) die("an impossible shape passes");
    }
    mem_free(&facts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    (data[0] & 1 ? checkpoint_answer : data_answer)(data + 1, size - 1);
    return 0;
}
