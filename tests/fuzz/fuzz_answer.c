/* Target: the answer of the process that reads untrusted files. Such a file may have taken over the
 * process, so any answer is possible. The first byte selects the kind of file. */
#include "fuzz.h"
#include "checkpoint/stored.h"
#include "checkpoint/tensor_table.h"
#include "data/data_private.h"
#include "data/set/facts.h"

static void checkpoint_answer(const uint8_t *data, size_t size)
{
    StoredFile file = {.path = "strange.h5", .fd = -1, .id = -1, .bytes = 1 << 20};
    CheckpointMeta meta = {0};
    if (stored_take(&file, (const char *)data, size) == OK && stored_list(&file) == OK) {
        fuzz_took(stored_meta(&file, &meta));
        for (int i = 0; i < file.count; ++i)
            if (!stored_find(&file, file.tensor[i].path)) die("a tensor is lost");
    }
    checkpoint_meta_fini(&meta);
    stored_close(&file);
}

/* Changes the answer for a good checkpoint, and parses it. Each three bytes of input are a position
 * in the answer and a number to add there. */
static void changed_answer(const uint8_t *data, size_t size)
{
    static const char path[] = "tests/fuzz/corpus/checkpoint/adam";
    static char *good;
    static size_t bytes;
    if (!good) {
        FILE *out = open_memstream(&good, &bytes);
        if (!out) die("open_memstream");
        tensor_table_read(path, sizeof path, out);
        if (fclose(out) != 0 || bytes == 0) die("%s", path);
    }
    uint8_t *text = mem_new(bytes);
    memcpy(text, good, bytes);
    for (; size >= 3; data += 3, size -= 3)
        text[((size_t)data[0] << 8 | data[1]) % bytes] += data[2];
    checkpoint_answer(text, bytes);
    mem_free(&text);
}

static void data_answer(const uint8_t *data, size_t size)
{
    FactsRequest request = {"strange.h5", "/x", "/y"};
    SetFacts *facts = mem_new(sizeof *facts);
    memcpy(facts, data, size < sizeof *facts ? size : sizeof *facts);
    Status status = facts_check(&request, facts);
    fuzz_took(status);
    if (status == OK && facts->parts > FACTS_X) {
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
    (data[0] & 2   ? changed_answer
     : data[0] & 1 ? checkpoint_answer
                   : data_answer)(data + 1, size - 1);
    return 0;
}
