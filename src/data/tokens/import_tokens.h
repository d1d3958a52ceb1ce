/* Imports of texts and of token ids, for the commands `weft data import text` and `tokens`. Errors
 * are those of data/import.h. */
#ifndef WEFT_DATA_IMPORT_TOKENS_H
#define WEFT_DATA_IMPORT_TOKENS_H

#include "data/import.h"

/* The data sets to write. */
typedef struct TokenOutput {
    /* borrowed: paths of the data set, and of a second one for the last part of the tokens (NULL:
     * none) */
    const char *path[2];
    /* fraction of the tokens that go to the second data set */
    double test_share;
    /* true: existing files are replaced; false: they are errors */
    bool force;
} TokenOutput;

/* Description of an array of token ids. */
typedef struct TokenArray {
    /* bits of an id: 16, 32 or 64; 0: as in the header of the file (.npy, llm.c) */
    int bits;
    /* size of the vocabulary; 0: the tokenizer's, or 1 + the largest id */
    int64_t vocab;
    /* borrowed: path of the tokenizer, which identifies the tokens; the size of its vocabulary is
     * used if vocab is 0. NULL: unknown */
    const char *tokenizer;
} TokenArray;

/* Imports a text's bytes as tokens. */
Status import_text_bytes(const char *file, const TokenOutput *out);
/* Imports a text that options->tokenizer encodes. */
Status import_text_encoded(const char *file, const TextTokens *options, const TokenOutput *out);
/* Imports an array of token ids. */
Status import_token_array(const char *file, const TokenArray *array, const TokenOutput *out);

#endif
