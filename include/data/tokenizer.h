/* GPT-2's tokenizer (Radford et al. 2019): byte-pair encoding (Sennrich et al. 2016) of bytes,
 * within the words that its pattern finds. Files are Hugging Face's vocab.json and merges.txt, or
 * tiktoken's lines of "base64 rank". Bytes that are not UTF-8 count as characters, so that decoding
 * returns any text unchanged. */
#ifndef WEFT_DATA_TOKENIZER_H
#define WEFT_DATA_TOKENIZER_H

#include "base.h"

typedef struct Tokenizer Tokenizer;
typedef struct TokenList {
    int64_t count, room;
    /* owned; released by token_list_fini */
    int32_t *token;
} TokenList;
void token_list_fini(TokenList *list);

/* Opens a tokenizer. path: a folder with vocab.json and merges.txt, or a tiktoken file.
 * ERR_NOINPUT, ERR_IO; ERR_DATA names file and line, or byte. Owner: the caller. */
Status tokenizer_open(Tokenizer **tokenizer, const char *path);
void tokenizer_free(Tokenizer **tokenizer);
/* Returns 1 + the largest token. */
int64_t tokenizer_vocab(const Tokenizer *tokenizer);
/* Returns the token <|endoftext|>; -1: the tokenizer has none. */
int32_t tokenizer_end_of_text(const Tokenizer *tokenizer);
/* Returns a hash of all tokens' bytes in the order of their numbers, as 16 hex digits; borrowed. */
const char *tokenizer_hash(const Tokenizer *tokenizer);

/* Identity of the vocabulary of a set's tokens: TOKENIZER_OF_BYTES where tokens are a text's bytes;
 * tokenizer_hash; "file-" and a hash of the bytes of a file that tokenizer_open cannot read; "":
 * unknown. */
enum { TOKENIZER_IDENTITY = 32 };
#define TOKENIZER_OF_BYTES "bytes"
/* Finds the identity of a tokenizer and the size of its vocabulary (0: the file cannot be read as a
 * tokenizer, which is logged). path TOKENIZER_OF_BYTES: bytes, not a file of that name.
 * ERR_NOINPUT, ERR_IO; ERR_DATA: a folder without a tokenizer. */
Status tokenizer_identify(const char *path, char identity[TOKENIZER_IDENTITY], int64_t *vocab);
/* UNKNOWN: one identity is unknown, or they are hashes of two kinds. */
typedef enum TokenizerMatch {
    TOKENIZERS_SAME,
    TOKENIZERS_DIFFER,
    TOKENIZERS_UNKNOWN
} TokenizerMatch;
TokenizerMatch tokenizer_match(const char *a, const char *b);
/* Describes tokens of this identity, as text after "its tokens are". path NULL: not known. Owner:
 * the caller. */
char *tokenizer_describe(const char *path, const char *identity);
/* Returns the message for TOKENIZERS_UNKNOWN. set, other: what has the tokens; tokens,
 * other_tokens: their descriptions. Owner: the caller. */
char *tokenizer_unknown_message(const char *set, const char *tokens, const char *other,
                                const char *other_tokens);

/* Appends the tokens of a whole text to out. special: <|endoftext|> in the text becomes that
 * token. */
void tokenizer_encode(Tokenizer *tokenizer, const char *text, size_t bytes, bool special,
                      TokenList *out);
/* Does the same for the beginning of a longer text: appends only tokens that do not depend on the
 * rest, and returns the number of bytes converted. */
size_t tokenizer_encode_part(Tokenizer *tokenizer, const char *text, size_t bytes, bool special,
                             TokenList *out);
/* Returns a token's bytes; borrowed. *bytes 0: the token does not exist. */
const char *tokenizer_bytes(const Tokenizer *tokenizer, int32_t token, size_t *bytes);

#endif
