/* GPT-2's tokenizer (Radford et al. 2019): a pattern splits a text into words, and byte-pair
 * encoding (Sennrich et al. 2016) merges the bytes of a word to tokens. Reads Hugging Face's
 * vocab.json and merges.txt, or a tiktoken file with lines of "base64 rank". Each byte that is not
 * part of valid UTF-8 is treated as one character. Therefore any sequence of bytes can be encoded,
 * and its tokens give the same bytes back. A token is represented by its id, a number from 0.
 * Encoding updates a cache of words, so only one thread at a time may encode with a tokenizer. */
#ifndef WEFT_DATA_TOKENIZER_H
#define WEFT_DATA_TOKENIZER_H

#include "base.h"

typedef struct Tokenizer Tokenizer;
/* A list of ids that grows. Begin with {0}, release with token_list_fini. */
typedef struct TokenList {
    /* count: number of ids; room: number of ids that `token` has room for */
    int64_t count, room;
    /* owned */
    int32_t *token;
} TokenList;
void token_list_fini(TokenList *list);

/* Reads a tokenizer. path: a folder with vocab.json and merges.txt, or a tiktoken file.
 * ERR_NOINPUT: a file does not exist or cannot be opened. ERR_IO: reading failed. ERR_DATA: a file
 * is invalid; the message names the file and, if there is one, the place in it. Release with
 * tokenizer_free. */
Status tokenizer_open(Tokenizer **tokenizer, const char *path);
void tokenizer_free(Tokenizer **tokenizer);
/* Returns the size of the vocabulary: 1 + the largest id. */
int64_t tokenizer_vocab_size(const Tokenizer *tokenizer);
/* Returns the id of the token <|endoftext|>; -1: the tokenizer does not have it. */
int32_t tokenizer_end_of_text(const Tokenizer *tokenizer);
/* Returns a hash of the bytes of all tokens in the order of their ids, as 16 hex digits;
 * borrowed. */
const char *tokenizer_hash(const Tokenizer *tokenizer);

/* The identity of a tokenizer is a text that data sets and checkpoints store:
 * - TOKENIZER_OF_BYTES, if the tokens are a text's bytes;
 * - tokenizer_hash, if tokenizer_open can read the tokenizer;
 * - "file-" and a hash of the file's bytes, if tokenizer_open cannot read the file;
 * - "", if the tokenizer is unknown.
 * TOKENIZER_IDENTITY: bytes that hold any identity and its final zero. */
enum { TOKENIZER_IDENTITY = 32 };
#define TOKENIZER_OF_BYTES "bytes"
/* Finds the identity of a tokenizer and the size of its vocabulary. If path is TOKENIZER_OF_BYTES,
 * the tokens are a text's bytes, even if there is a file with this name. If path is a file that is
 * no valid tokenizer, *vocab is 0 and the log says so. ERR_NOINPUT: a file does not exist or cannot
 * be opened. ERR_IO: reading failed. ERR_DATA: a folder has no usable tokenizer, or a file is too
 * large. */
Status tokenizer_identify(const char *path, char identity[TOKENIZER_IDENTITY], int64_t *vocab);
/* The result of a comparison. Equal identities are TOKENIZERS_SAME, even if both are "".
 * TOKENIZERS_UNKNOWN: exactly one identity is "", or one is a hash of tokens and the other is a
 * hash of a file. */
typedef enum TokenizerMatch {
    TOKENIZERS_SAME,
    TOKENIZERS_DIFFER,
    TOKENIZERS_UNKNOWN
} TokenizerMatch;
/* Compares two identities. */
TokenizerMatch tokenizer_match(const char *a, const char *b);
/* Returns a description of the tokens of a tokenizer, a text that continues "its tokens are". path:
 * path of the tokenizer; NULL: it is not known. The caller owns the text. */
char *tokenizer_describe(const char *path, const char *identity);
/* Returns the message that two tokenizers cannot be compared (TOKENIZERS_UNKNOWN). set: name of a
 * data set or checkpoint; tokens: description of its tokens (tokenizer_describe). other,
 * other_tokens: the same for the second data set or checkpoint. The caller owns the text. */
char *tokenizer_unknown_message(const char *set, const char *tokens, const char *other,
                                const char *other_tokens);

/* Appends the ids of a whole text to `out`. special = true: <|endoftext|> in the text becomes its
 * token, if the tokenizer has it; false: it is encoded as ordinary text. */
void tokenizer_encode(Tokenizer *tokenizer, const char *text, size_t bytes, bool special,
                      TokenList *out);
/* Does what tokenizer_encode does, for the beginning of a longer text: appends only ids that do not
 * depend on the rest of the text, and returns the number of bytes that they encode. */
size_t tokenizer_encode_part(Tokenizer *tokenizer, const char *text, size_t bytes, bool special,
                             TokenList *out);
/* Returns the bytes of a token; borrowed. *bytes: their number, 0 if there is no such token. */
const char *tokenizer_bytes(const Tokenizer *tokenizer, int32_t token, size_t *bytes);

#endif
