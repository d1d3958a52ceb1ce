/* Tests GPT-2's tokenizer against tokens of tokenizers and tiktoken (tools/golden_tokenizer.py):
 * both kinds of file, texts in pieces, bytes that are not text, and files that are not a
 * tokenizer. */
#include "data.h"
#include "harness.h"

#define GOLDEN "tests/golden/tokenizer"

static Tokenizer *opened(const char *path)
{
    Tokenizer *t = NULL;
    CHECK_OK(tokenizer_open(&t, path));
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    return t;
}

/* Converts hexadecimal digits to the bytes of a text; owned by the caller. */
static char *from_hex(const char *hex, size_t *bytes)
{
    char *text = mem_new(strlen(hex) / 2 + 1);
    *bytes = *hex == '-' ? 0 : strlen(hex) / 2;
    for (size_t i = 0; i < *bytes; ++i) {
        unsigned value = 0;
        CU_ASSERT_EQUAL(sscanf(hex + 2 * i, "%2x", &value), 1);
        text[i] = (char)value;
    }
    return text;
}

static bool same(const TokenList *list, const char *want)
{
    char *at = (char *)(uintptr_t)want;
    for (int64_t i = 0; i < list->count; ++i) {
        if (*at == '-' || *at == 0 || strtol(at, &at, 10) != list->token[i]) return false;
        if (*at == ',') ++at;
    }
    return *at == 0 || *at == '\n' || (*at == '-' && list->count == 0);
}

/* Encodes the text in pieces of `step` bytes. */
static void encode_pieces(Tokenizer *t, const char *text, size_t bytes, size_t step, bool special,
                          TokenList *list)
{
    size_t done = 0;
    for (size_t end = step; end < bytes; end += step)
        done += tokenizer_encode_part(t, text + done, end - done, special, list);
    tokenizer_encode(t, text + done, bytes - done, special, list);
}

static bool decodes(const Tokenizer *t, const TokenList *list, const char *text, size_t bytes)
{
    size_t at = 0, token_bytes;
    for (int64_t i = 0; i < list->count; ++i, at += token_bytes) {
        const char *token = tokenizer_bytes(t, list->token[i], &token_bytes);
        if (token_bytes == 0 || token_bytes > bytes - at ||
            memcmp(token, text + at, token_bytes) != 0)
            return false;
    }
    return at == bytes;
}

static void check_case(Tokenizer *t, const char *hex, const char *want)
{
    static const size_t step[] = {1 << 20, 1, 2, 3, 7, 64};
    size_t bytes;
    char *text = from_hex(hex, &bytes);
    for (size_t i = 0; i < sizeof step / sizeof step[0]; ++i) {
        TokenList list = {0};
        encode_pieces(t, text, bytes, step[i], false, &list);
        bool good = same(&list, want) && decodes(t, &list, text, bytes);
        if (!good)
            printf("  %s in pieces of %zu: %lld tokens\n", hex, step[i], (long long)list.count);
        CU_ASSERT(good);
        token_list_fini(&list);
    }
    mem_free(&text);
}

static void golden(void)
{
    static const char *const path[] = {GOLDEN, GOLDEN "/ranks.tiktoken"};
    for (int kind = 0; kind < 2; ++kind) {
        Tokenizer *t = opened(path[kind]);
        CU_ASSERT(tokenizer_vocab_size(t) == 1001 && tokenizer_end_of_text(t) == 1000);
        char *line = NULL;
        size_t room = 0;
        int cases = 0;
        FILE *file = fopen(GOLDEN "/cases.txt", "r");
        CU_ASSERT_PTR_NOT_NULL_FATAL(file);
        for (; getline(&line, &room, file) > 0; ++cases) {
            char *tokens = strchr(line, ' ');
            CU_ASSERT_PTR_NOT_NULL_FATAL(tokens);
            *tokens++ = 0;
            check_case(t, line, tokens);
        }
        CU_ASSERT(cases > 40);
        free(line);
        fclose(file);
        tokenizer_free(&t);
    }
}

static void hashes(void)
{
    Tokenizer *a = opened(GOLDEN), *b = opened(GOLDEN "/ranks.tiktoken");
    CU_ASSERT_STRING_EQUAL(tokenizer_hash(a), tokenizer_hash(b));
    CU_ASSERT_EQUAL(strlen(tokenizer_hash(a)), 16);
    tokenizer_free(&a);
    tokenizer_free(&b);
}

/* With `special`, <|endoftext|> is one token wherever a piece ends, and ends the text before it:
 * two blanks there are one word. */
static void special(void)
{
    static const char text[] = "a  <|endoftext|> b<|endo<|endoftext|><|endoftext|>  ";
    Tokenizer *t = opened(GOLDEN);
    for (size_t step = 1; step < sizeof text; ++step) {
        TokenList list = {0}, head = {0};
        encode_pieces(t, text, sizeof text - 1, step, true, &list);
        CU_ASSERT(decodes(t, &list, text, sizeof text - 1));
        int ends = 0;
        for (int64_t i = 0; i < list.count; ++i) ends += list.token[i] == 1000;
        CU_ASSERT_EQUAL(ends, 3);
        tokenizer_encode(t, "a  ", 3, false, &head);
        CU_ASSERT(memcmp(head.token, list.token, (size_t)head.count * sizeof *head.token) == 0 &&
                  list.token[head.count] == 1000);
        token_list_fini(&list);
        token_list_fini(&head);
    }
    tokenizer_free(&t);
}

/* Any bytes are decoded unchanged, in pieces or not; a long word takes no longer than others. */
static void no_text(void)
{
    enum { BYTES = 300000 };
    Tokenizer *t = opened(GOLDEN);
    char *text = mem_new(BYTES);
    for (int kind = 0; kind < 3; ++kind) {
        TokenList all = {0}, parts = {0};
        uint32_t x = 1;
        for (int i = 0; i < BYTES; ++i) {
            x = x * 1664525u + 1013904223u;
            text[i] = kind == 0 ? (char)(x >> 24) : kind == 1 ? 'a' : (char)(0xc0 | x >> 28);
        }
        tokenizer_encode(t, text, BYTES, false, &all);
        encode_pieces(t, text, BYTES, 100003, false, &parts);
        CU_ASSERT(decodes(t, &all, text, BYTES));
        CU_ASSERT(parts.count == all.count &&
                  memcmp(parts.token, all.token, (size_t)all.count * sizeof *all.token) == 0);
        token_list_fini(&all);
        token_list_fini(&parts);
    }
    mem_free(&text);
    size_t bytes;
    (void)tokenizer_bytes(t, -1, &bytes);
    CU_ASSERT_EQUAL(bytes, 0);
    (void)tokenizer_bytes(t, 1001, &bytes);
    CU_ASSERT_EQUAL(bytes, 0);
    tokenizer_free(&t);
}

static void put(const char *folder, const char *name, const char *text)
{
    char *path = mem_format("%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(text, file);
    fclose(file);
    mem_free(&path);
}

/* Writes vocab.json with all bytes (if `bytes`) and these entries. */
static void put_vocab(const char *folder, const char *more, bool bytes)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    fputc('{', out);
    for (int b = 0, hidden = 0; bytes && b < 256; ++b) {
        bool seen = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        fprintf(out, "\"\\u%04x\": %d, ", seen ? b : 256 + hidden++, b);
    }
    fprintf(out, "%s}", more);
    fclose(out);
    put(folder, "vocab.json", text);
    free(text);
}

static void refused(const char *folder, const char *vocab, const char *merges, const char *why)
{
    Tokenizer *t;
    put_vocab(folder, vocab, true);
    put(folder, "merges.txt", merges);
    CHECK_FAILS(tokenizer_open(&t, folder), ERR_DATA, why);
    CU_ASSERT_PTR_NULL(t);
}

static void refused_ranks(const char *folder, const char *text, const char *why)
{
    Tokenizer *t;
    char *path = mem_format("%s/ranks", folder);
    put(folder, "ranks", text);
    CHECK_FAILS(tokenizer_open(&t, path), ERR_DATA, why);
    mem_free(&path);
}

static void malformed(void)
{
    char folder[] = "/tmp/weft-tokenizer-XXXXXX";
    Tokenizer *t;
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    CHECK_FAILS(tokenizer_open(&t, folder), ERR_NOINPUT, "vocab.json");
    CHECK_FAILS(tokenizer_open(&t, "none"), ERR_NOINPUT, "none");
    refused(folder, "\"ab\": 256,", "", "vocab.json: byte ");
    refused(folder, "\"ab\": -1", "", "expected a whole number");
    refused(folder, "\"ab\": 4194304", "", "token id 4194304");
    refused(folder, "\"ab\": 1.5", "", "vocab.json: byte ");
    refused(folder, "\"ab\": 7", "", "id 7 appears twice");
    refused(folder, "\"ab\": 256, \"ab\": 257", "", "the same token has ids 256 and 257");
    refused(folder, "\"a\\u0144\": 256", "", "stands for no byte");
    /* the token as it stands in the file, whose first characters stand for bytes */
    refused(folder, "\"\u0120ab\u20ac\": 256", "", "token '\u0120ab\u20ac' has a character");
    refused(folder, "\"\": 256", "", "a token is empty");
    refused(folder, "\"ab\": 256", "#version\na b\n\nab\n",
            "merges.txt: line 4: expected two tokens");
    refused(folder, "\"ab\": 256", "a b c\n", "line 1: expected two tokens");
    refused(folder, "\"ab\": 256", "a c\n", "line 1: the two together are no token");
    refused(folder, "\"ab\": 256", "a b\nabc c\n", "line 2: the first part is no token");
    put_vocab(folder, "\"a\": 0", false);
    CHECK_FAILS(tokenizer_open(&t, folder), ERR_DATA, "no token for the single byte 0");
    refused_ranks(folder, "", "has no tokens");
    refused_ranks(folder, "YQ== 0\nYQ=! 1\n", "line 2: expected a token in base64");
    refused_ranks(folder, "YQ== 0\nYg 1\n", "line 2: expected a token in base64");
    refused_ranks(folder, "YQ==\n", "line 1: expected a token in base64");
    refused_ranks(folder, "YQ== x\n", "line 1: expected a token in base64");
    refused_ranks(folder, "Y=== 1\n", "line 1: expected a token in base64");
    refused_ranks(folder, "YQ== 99999999999\n", "line 1: token id");
    refused_ranks(folder, "YQ== 0\nYg== 0\n", "id 0 appears twice");
    refused_ranks(folder, "YQ== 0\nYQ== 1\n", "the same token");
    refused_ranks(folder, "YQ== 0\n", "no token for the single byte 0");
    put_vocab(folder, "\"ab\": 300", true);
    put(folder, "merges.txt", "a b\r\n");
    t = opened(folder);
    CU_ASSERT(tokenizer_end_of_text(t) == -1 && tokenizer_vocab_size(t) == 301);
    size_t bytes;
    (void)tokenizer_bytes(t, 260, &bytes);
    CU_ASSERT_EQUAL(bytes, 0);
    tokenizer_free(&t);
    put(folder, "merges.txt", "\xef\xbb\xbf#version: 0.2\na b\n");
    t = opened(folder);
    TokenList list = {0};
    tokenizer_encode(t, "abb", 3, false, &list);
    CU_ASSERT_TRUE(same(&list, "300,98"));
    token_list_fini(&list);
    tokenizer_free(&t);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CU_ASSERT_EQUAL(system(command), 0);
}

TEST_MAIN("tokenizer", {"golden", golden}, {"hashes", hashes}, {"special", special},
          {"no text", no_text}, {"malformed", malformed})
