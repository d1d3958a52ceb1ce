/* Target: the files of a tokenizer, and a text for it. The first byte selects a tiktoken file, or
 * the proportions in which the other bytes are vocab.json, merges.txt and the text. */
#include "fuzz.h"
#include "data.h"

#include <stdio.h>

static void put(const char *path, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) die("%s", path);
}

/* Encodes a text. Its tokens must decode to the same text. */
static void encode(Tokenizer *t, const uint8_t *data, size_t size)
{
    TokenList list = {0};
    size_t at = 0, bytes, done = tokenizer_encode_part(t, (const char *)data, size, true, &list);
    tokenizer_encode(t, (const char *)data + done, size - done, true, &list);
    for (int64_t i = 0; i < list.count; ++i, at += bytes) {
        const char *token = tokenizer_bytes(t, list.token[i], &bytes);
        if (bytes > size - at || memcmp(token, data + at, bytes) != 0)
            die("token %d at %zu is not the text's", list.token[i], at);
    }
    if (at != size) die("%zu bytes of %zu", at, size);
    token_list_fini(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Tokenizer *t = NULL;
    if (size < 1) return 0;
    const uint8_t how = *data++;
    --size;
    Status st;
    if (how == 0) {
        st = tokenizer_open(&t, fuzz_file(data, size));
    } else {
        const size_t vocab = size * how / 256, merges = (size - vocab) / 2;
        char *folder = mem_format("%s.d", fuzz_out());
        char *a = mem_format("%s/vocab.json", folder), *b = mem_format("%s/merges.txt", folder);
        mkdir(folder, 0700);
        put(a, data, vocab);
        put(b, data + vocab, merges);
        st = tokenizer_open(&t, folder);
        unlink(a);
        unlink(b);
        rmdir(folder);
        mem_free(&a);
        mem_free(&b);
        mem_free(&folder);
    }
    fuzz_took(st);
    if (st == OK) encode(t, data, size);
    tokenizer_free(&t);
    return 0;
}
