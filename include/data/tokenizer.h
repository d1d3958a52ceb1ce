/* GPT-2's tokenizer (Radford et al. 2019): byte-pair encoding (Sennrich et al. 2016) of bytes,
 * within words that its pattern cuts. Files are vocab.json and merges.txt as Hugging Face has them,
 * or one of lines "base64 rank" as tiktoken has it. Bytes that are no UTF-8 are characters of their
 * own, so that decoding gives back any text. */
#ifndef WEFT_DATA_TOKENIZER_H
#define WEFT_DATA_TOKENIZER_H

#include "base.h"

typedef struct Tokenizer Tokenizer;
typedef struct TokenList {
    int64_t count, room;
    /* owned: token_list_fini */
    int32_t *token;
} TokenList;
void token_list_fini(TokenList *list);

/* path: a folder with vocab.json and merges.txt, or a tiktoken file. ERR_NOINPUT, ERR_IO; ERR_DATA
 * names file and line, or byte. Owner: the caller. */
Status tokenizer_open(Tokenizer **tokenizer, const char *path);
void tokenizer_free(Tokenizer **tokenizer);
/* 1 + the largest token */
int64_t tokenizer_vocab(const Tokenizer *tokenizer);
/* Of <|endoftext|>; -1: it has none. */
int32_t tokenizer_end_of_text(const Tokenizer *tokenizer);
/* Of all tokens' bytes in the order of their numbers, 16 digits; borrowed. */
const char *tokenizer_hash(const Tokenizer *tokenizer);
/* Adds the tokens of a whole text. special: <|endoftext|> in it is that token. */
void tokenizer_encode(Tokenizer *tokenizer, const char *text, size_t bytes, bool special,
                      TokenList *out);
/* The same of a text that goes on: adds what does not depend on the rest, and returns how many
 * bytes that was. */
size_t tokenizer_encode_part(Tokenizer *tokenizer, const char *text, size_t bytes, bool special,
                             TokenList *out);
/* A token's bytes; borrowed. 0 of them: there is no such token. */
const char *tokenizer_bytes(const Tokenizer *tokenizer, int32_t token, size_t *bytes);

#endif
