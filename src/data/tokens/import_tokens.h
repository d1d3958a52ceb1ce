/* Declares the imports of texts and of token ids, for the commands `weft data import text` and
 * `weft data import tokens`. They return the errors that data/import.h lists. */
#ifndef WEFT_DATA_IMPORT_TOKENS_H
#define WEFT_DATA_IMPORT_TOKENS_H

#include "data/import.h"

/* The data sets to write. */
typedef struct TokenOutput {
    /* path of the data set, and path of a second data set for the last part of the tokens (NULL:
     * none); borrowed */
    const char *path[2];
    /* fraction of the tokens that go to the second data set */
    double test_share;
    /* true: existing files are replaced; false: they are errors */
    bool force;
} TokenOutput;

/* Description of an array of token ids. */
typedef struct TokenArray {
    /* bits of an id: 16, 32 or 64; 0: the header of the file gives them (.npy, llm.c) */
    int bits;
    /* size of the vocabulary; 0: that of the tokenizer or, if that is unknown, 1 + the largest
     * id */
    int64_t vocab;
    /* path of the tokenizer that wrote the tokens, borrowed; NULL: unknown */
    const char *tokenizer;
} TokenArray;

/* Imports a text's bytes as tokens. */
Status import_text_bytes(const char *file, const TokenOutput *out);
/* Imports a text that options->tokenizer encodes. */
Status import_text_encoded(const char *file, const TextTokens *options, const TokenOutput *out);
/* Imports an array of token ids. */
Status import_token_array(const char *file, const TokenArray *array, const TokenOutput *out);

#endif
