/* Identifies tokenizers by a hash, and compares those of data sets and checkpoints, because one id
 * means different texts in two tokenizers. */
#include "tokenizer_private.h"

#include "base/rng.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_PREFIX "file-"

Status tokenizer_identify(const char *path, char identity[TOKENIZER_IDENTITY], int64_t *vocab)
{
    struct stat about;
    Tokenizer *t;
    char *text = NULL;
    size_t bytes;
    if (strcmp(path, TOKENIZER_OF_BYTES) == 0) {
        snprintf(identity, TOKENIZER_IDENTITY, "%s", path);
        *vocab = 256;
        return OK;
    }
    Status st = tokenizer_open(&t, path);
    *vocab = 0;
    if (st == OK) {
        snprintf(identity, TOKENIZER_IDENTITY, "%s", tokenizer_hash(t));
        *vocab = tokenizer_vocab_size(t);
        tokenizer_free(&t);
        return OK;
    }
    if (st != ERR_DATA || stat(path, &about) != 0 || !S_ISREG(about.st_mode)) return st;
    log_info("%s; using a hash of the file as the tokenizer's identity", fail_message());
    TRY(file_text(path, TOKENIZER_FILE_MAX, &text, &bytes));
    snprintf(identity, TOKENIZER_IDENTITY, FILE_PREFIX "%016" PRIx64, hash_bytes(text, bytes));
    mem_free(&text);
    return OK;
}

static bool is_file_hash(const char *identity)
{
    return strncmp(identity, FILE_PREFIX, strlen(FILE_PREFIX)) == 0;
}

TokenizerMatch tokenizer_match(const char *a, const char *b)
{
    if (strcmp(a, b) == 0) return TOKENIZERS_SAME;
    if (!*a || !*b) return TOKENIZERS_UNKNOWN;
    /* The bytes of a text are not the ids of any tokenizer that is read from files. */
    if (strcmp(a, TOKENIZER_OF_BYTES) == 0 || strcmp(b, TOKENIZER_OF_BYTES) == 0)
        return TOKENIZERS_DIFFER;
    /* The hash of a file and the hash of tokens may be of one tokenizer. */
    if (is_file_hash(a) != is_file_hash(b)) return TOKENIZERS_UNKNOWN;
    return TOKENIZERS_DIFFER;
}

char *tokenizer_describe(const char *path, const char *identity)
{
    if (!*identity) return mem_text("of an unknown tokenizer");
    if (strcmp(identity, TOKENIZER_OF_BYTES) == 0) return mem_text("bytes");
    return path ? mem_format("those of the tokenizer %s (hash %s)", path, identity)
                : mem_format("those of the tokenizer with hash %s", identity);
}

char *tokenizer_unknown_message(const char *set, const char *tokens, const char *other,
                                const char *other_tokens)
{
    return mem_format("%s: its tokens are %s, and those of %s are %s: the two cannot be compared, "
                      "and weft assumes that both use the same tokenizer",
                      set, tokens, other, other_tokens);
}
