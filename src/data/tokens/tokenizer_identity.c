/* Identity of the vocabulary that tokens belong to, by which files are compared: two sets of tokens
 * mean the same only if equal numbers stand for equal texts. */
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
        *vocab = tokenizer_vocab(t);
        tokenizer_free(&t);
        return OK;
    }
    if (st != ERR_DATA || stat(path, &about) != 0 || !S_ISREG(about.st_mode)) return st;
    log_info("%s; the file is known by a hash of its bytes", fail_message());
    TRY(file_text(path, TOKENIZER_FILE, &text, &bytes));
    snprintf(identity, TOKENIZER_IDENTITY, FILE_PREFIX "%016" PRIx64, hash_bytes(text, bytes));
    mem_free(&text);
    return OK;
}

static bool is_file(const char *identity)
{
    return strncmp(identity, FILE_PREFIX, strlen(FILE_PREFIX)) == 0;
}

TokenizerMatch tokenizer_match(const char *a, const char *b)
{
    if (strcmp(a, b) == 0) return TOKENIZERS_SAME;
    if (!*a || !*b) return TOKENIZERS_UNKNOWN;
    bool bytes = strcmp(a, TOKENIZER_OF_BYTES) == 0 || strcmp(b, TOKENIZER_OF_BYTES) == 0;
    return is_file(a) == is_file(b) || bytes ? TOKENIZERS_DIFFER : TOKENIZERS_UNKNOWN;
}

char *tokenizer_words(const char *path, const char *identity)
{
    if (!*identity) return mem_text("of an unknown tokenizer");
    if (strcmp(identity, TOKENIZER_OF_BYTES) == 0) return mem_text("bytes");
    return path ? mem_format("those of the tokenizer %s (hash %s)", path, identity)
                : mem_format("those of the tokenizer with hash %s", identity);
}

char *tokenizer_line(const char *set, const char *words, const char *like, const char *like_words)
{
    return mem_format("%s: its tokens are %s, and those of %s are %s: the two cannot be compared, "
                      "so equal numbers are taken for equal tokens",
                      set, words, like, like_words);
}
