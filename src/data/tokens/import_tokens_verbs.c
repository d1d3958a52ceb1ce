/* Implements the verbs `weft data import text` and `weft data import tokens`. */
#include "../data_private.h"
#include "data/tokenizer.h"
#include "import_tokens.h"

#include <string.h>

typedef struct TokenOptions {
    const char *out, *test;
    double test_share;
    bool force;
    /* `weft data import tokens` only: index in token_bits */
    int bits;
    /* `weft data import tokens` only: size of the vocabulary; 0: not given */
    int64_t vocab;
    const char *tokenizer;
    /* `weft data import text` only: true if --special is given */
    bool special;
} TokenOptions;

/* clang-format off */
#define TEST_FLAGS                                                                                 \
    {"--test", FLAG_FIELD(TokenOptions, test), .value = "OUT", .writes = true,                     \
     .help = "second data set, for the last part of the tokens"},                                  \
    {"--test-share", FLAG_FIELD(TokenOptions, test_share), .value = "S", .hi = 1,                  \
     .default_text = "0.1", .needs = "--test", .help = "fraction of the tokens for --test"},       \
    FLAG_FORCE(TokenOptions, force)
/* clang-format on */

static const Flag text_flags[] = {
    FLAG_OUT(TokenOptions, out, "the data set to write"),
    {"--tokenizer", FLAG_FIELD(TokenOptions, tokenizer), .value = "PATH",
     .help =
         "GPT-2's tokenizer: a folder with vocab.json and merges.txt, or a tiktoken file; bytes "
         "(default): each byte is a token"},
    {"--special", FLAG_FIELD(TokenOptions, special), .needs = "--tokenizer",
     .help = "read <|endoftext|> in FILE as one token, not as ordinary text"},
    TEST_FLAGS,
};
/* widths of a token in bits, in the order of the values of --bits; 0: the header gives the width */
static const int token_bits[] = {0, 16, 32, 64};
static const Flag token_flags[] = {
    FLAG_OUT(TokenOptions, out, "the data set to write"),
    {"--bits", FLAG_FIELD(TokenOptions, bits), .value = "auto|16|32|64", .default_text = "auto",
     .help = "bits of a token in FILE; auto: as its header says"},
    {"--vocab", FLAG_FIELD(TokenOptions, vocab), .value = "V", .lo = 1, .hi = INT32_MAX,
     .help = "size of the vocabulary; by default the tokenizer's, or 1 + the largest token"},
    {"--tokenizer", FLAG_FIELD(TokenOptions, tokenizer), .value = "PATH",
     .help = "tokenizer that wrote FILE: GPT-2's files, any other file, or bytes; recorded, to "
             "detect data sets of other tokenizers"},
    TEST_FLAGS,
};

static TokenOutput output_of(const TokenOptions *o)
{
    return (TokenOutput){{o->out, o->test}, o->test_share, o->force};
}

static Status log_written(Status status, const TokenOptions *o)
{
    if (status != OK) return status;
    log_info("wrote %s", o->out);
    if (o->test) log_info("wrote %s", o->test);
    return OK;
}

static Status run_text(int argc, char **argv, const void *options)
{
    const TokenOptions *o = options;
    (void)argc;
    const TokenOutput out = output_of(o);
    const TextTokens text = {.tokenizer = o->tokenizer, .special = o->special};
    const bool bytes = !o->tokenizer || strcmp(o->tokenizer, TOKENIZER_OF_BYTES) == 0;
    if (bytes && o->special)
        return fail(ERR_USAGE, "--tokenizer bytes: has no <|endoftext|>, which --special needs");
    Status st =
        bytes ? import_text_bytes(argv[0], &out) : import_text_encoded(argv[0], &text, &out);
    return log_written(st, o);
}

static Status run_tokens(int argc, char **argv, const void *options)
{
    const TokenOptions *o = options;
    (void)argc;
    const TokenOutput out = output_of(o);
    const TokenArray array = {
        .bits = token_bits[o->bits], .vocab = o->vocab, .tokenizer = o->tokenizer};
    return log_written(import_token_array(argv[0], &array, &out), o);
}

/* listed in IMPORTERS (src/data/importers.c) */
const Verb import_text = {
    .name = "data import text",
    .words = "FILE",
    .words_min = 1,
    .words_max = 1,
    .expects = "one file, and -o OUT",
    .help = "imports a text file (.gz too) as bytes, or as tokens of a tokenizer",
    VERB_FLAGS(TokenOptions, text_flags),
    .traits = VERB_NO_TRAITS,
    .run = run_text,
};

/* listed in IMPORTERS (src/data/importers.c) */
const Verb import_tokens = {
    .name = "data import tokens",
    .words = "FILE",
    .words_min = 1,
    .words_max = 1,
    .expects = "one file, and -o OUT",
    .help = "imports an array of token ids that a tokenizer has written (.gz too)",
    .more = "The headers of NumPy's .npy files and llm.c's shards give the width of a token. For "
            "files of little-endian ids without a header --bits gives it.",
    VERB_FLAGS(TokenOptions, token_flags),
    .traits = VERB_NO_TRAITS,
    .run = run_tokens,
};
