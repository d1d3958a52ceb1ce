/* GPT-2's tokenizer (Radford et al. 2019): a pattern splits a text into words, and byte-pair
 * encoding (Sennrich et al. 2016) merges the bytes of a word to tokens. Reads Hugging Face's
 * vocab.json and merges.txt, or a tiktoken file with lines of "base64 rank". Bytes that are not
 * UTF-8 count as characters, so that decoding returns any text unchanged. A token is represented by
 * its id, a number from 0. Encoding updates a cache of words, so only one thread at a time may
 * encode with a tokenizer. */
#ifndef WEFT_DATA_TOKENIZER_H
#define WEFT_DATA_TOKENIZER_H

#include "base.h"

typedef struct Tokenizer Tokenizer;
/* List of ids that grows. All zero: empty. */
typedef struct TokenList {
    int64_t count, room;
    /* owned; released by token_list_fini */
    int32_t *token;
} TokenList;
void token_list_fini(TokenList *list);

/* Reads a tokenizer. path: a folder with vocab.json and merges.txt, or a tiktoken file.
 * ERR_NOINPUT, ERR_IO; ERR_DATA, with the file and its line or byte. Owner: the caller, who frees
 * it with tokenizer_free. */
Status tokenizer_open(Tokenizer **tokenizer, const char *path);
void tokenizer_free(Tokenizer **tokenizer);
/* Returns the size of the vocabulary: 1 + the largest id. */
int64_t tokenizer_vocab(const Tokenizer *tokenizer);
/* Returns the id of <|endoftext|>; -1: the tokenizer does not have it. */
int32_t tokenizer_end_of_text(const Tokenizer *tokenizer);
/* Returns a hash of all tokens' bytes in the order of their ids, as 16 hex digits; borrowed. */
const char *tokenizer_hash(const Tokenizer *tokenizer);

/* The identity of a tokenizer is a text that data sets and checkpoints store:
 * - TOKENIZER_OF_BYTES, if the tokens are a text's bytes;
 * - tokenizer_hash, if tokenizer_open can read the tokenizer;
 * - "file-" and a hash of the file's bytes, if tokenizer_open cannot read the file;
 * - "", if the tokenizer is unknown.
 * TOKENIZER_IDENTITY: bytes that hold any identity and its final zero. */
enum { TOKENIZER_IDENTITY = 32 };
#define TOKENIZER_OF_BYTES "bytes"
/* Finds the identity of a tokenizer and the size of its vocabulary. *vocab 0: path is a file that
 * cannot be read as a tokenizer, and the log says so. path TOKENIZER_OF_BYTES: the tokens are a
 * text's bytes, even if a file has this name. ERR_NOINPUT, ERR_IO; ERR_DATA: a folder without a
 * usable tokenizer. */
Status tokenizer_identify(const char *path, char identity[TOKENIZER_IDENTITY], int64_t *vocab);
/* UNKNOWN: one identity is unknown, or one is a hash of tokens and the other a hash of a file. */
typedef enum TokenizerMatch {
    TOKENIZERS_SAME,
    TOKENIZERS_DIFFER,
    TOKENIZERS_UNKNOWN
} TokenizerMatch;
/* Compares two identities. */
TokenizerMatch tokenizer_match(const char *a, const char *b);
/* Describes the tokens of a tokenizer, as a text that continues "its tokens are". path: that of the
 * tokenizer; NULL: not known. Owner: the caller. */
char *tokenizer_describe(const char *path, const char *identity);
/* Returns a message for TOKENIZERS_UNKNOWN. set, other: names of the two data sets or checkpoints;
 * tokens, other_tokens: descriptions of their tokens by tokenizer_describe. Owner: the caller. */
char *tokenizer_unknown_message(const char *set, const char *tokens, const char *other,
                                const char *other_tokens);

/* Appends the ids of a whole text to out. special: <|endoftext|> in the text becomes its token, if
 * the tokenizer has it, instead of being encoded as ordinary text. */
void tokenizer_encode(Tokenizer *tokenizer, const char *text, size_t bytes, bool special,
                      TokenList *out);
/* Does the same for the beginning of a longer text: appends only the ids that do not depend on the
 * rest of the text, and returns the number of bytes encoded. */
size_t tokenizer_encode_part(Tokenizer *tokenizer, const char *text, size_t bytes, bool special,
                             TokenList *out);
/* Returns a token's bytes; borrowed. *bytes 0: the token does not exist. */
const char *tokenizer_bytes(const Tokenizer *tokenizer, int32_t token, size_t *bytes);

#endif
