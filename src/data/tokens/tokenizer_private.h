/* Declares a tokenizer's tables, and the functions that fill them from its files. */
#ifndef WEFT_DATA_TOKENIZER_PRIVATE_H
#define WEFT_DATA_TOKENIZER_PRIVATE_H

#include "data/tokenizer.h"

enum {
    /* 1 + the largest possible id */
    TOKENIZER_IDS_MAX = 1 << 22,
    /* largest number of bytes of a token in a tiktoken file, and of either part of a pair in
     * merges.txt */
    TOKEN_BYTES_MAX = 1024,
    /* largest size of a tokenizer's file in bytes */
    TOKENIZER_FILE_MAX = 1 << 26,
};
#define END_OF_TEXT "<|endoftext|>"

/* Two tokens, left and right, that are merged into one, merged. Pairs with a lower rank are merged
 * first. left -1: an empty entry of the table. */
typedef struct TokenPair {
    int32_t left, right, rank, merged;
} TokenPair;
/* Sizes of a direct-mapped cache of encoded words. Words of more than CACHE_WORD_BYTES bytes or
 * more than CACHE_TOKENS tokens are not cached. An entry has 64 bytes, the size of a cache line. */
enum { CACHE_WORD_BYTES = 27, CACHE_TOKENS = 8, CACHE_ENTRIES = 1 << 16 };
/* a word and its tokens */
typedef struct CachedWord {
    /* number of bytes of the word; 0: an empty entry */
    uint8_t length;
    /* number of tokens */
    uint8_t count;
    char word[CACHE_WORD_BYTES];
    int32_t token[CACHE_TOKENS];
} CachedWord;

struct Tokenizer {
    /* 1 + the largest id, so ids without a token are counted; the bytes of such an id are an empty
     * part of text */
    int64_t count;
    /* bytes of all tokens; token i has text[start[i]] to text[start[i + 1] - 1]; owned */
    char *text;
    /* offsets in text, [count + 1]; owned */
    int64_t *start;
    /* id of the token that consists of the single byte b, for each b */
    int32_t byte_token[256];
    /* id of <|endoftext|>; -1: none */
    int32_t end_of_text;
    /* hash table of pairs, with linear probing, [pair_room]; owned */
    TokenPair *pair;
    /* number of entries of `pair`, a power of two */
    int64_t pair_room;
    /* hash table that finds a token's id by its bytes, with linear probing, [slot_room]; owned. -1:
     * an empty entry */
    int32_t *slot;
    /* number of entries of `slot`, a power of two */
    int64_t slot_room;
    /* cache of encoded words, [CACHE_ENTRIES]; owned */
    CachedWord *cache;
    /* hash of the bytes of all tokens in the order of their ids: 16 hex digits and a final zero, as
     * tokenizer_hash returns it */
    char hash[17];
};

/* a token as it was read from a file */
typedef struct FileToken {
    int64_t id;
    /* the token's bytes; the reader of the file owns them */
    char *bytes;
    /* number of bytes */
    int length;
    /* position in the file, for messages: number of the line, or of the entry */
    int64_t position;
} FileToken;
/* Copies all tokens of a file, [count], to the tables; sorts `token` by id. unit: what
 * FileToken.position counts, "line" or "token". ERR_DATA: an id or a token occurs twice, or a
 * single byte has no token. */
Status tokenizer_add_tokens(Tokenizer *t, const char *path, const char *unit, FileToken *token,
                            int64_t count);
/* Returns the id of the token with these bytes; -1: there is none. */
int32_t tokenizer_find(const Tokenizer *t, const char *bytes, size_t length);
/* Allocates the table for at most `pairs` pairs. Called once, before tokenizer_add_pair. */
void tokenizer_new_pairs(Tokenizer *t, int64_t pairs);
/* Adds a pair. If the same two tokens are added several times, the lowest rank is kept. */
void tokenizer_add_pair(Tokenizer *t, TokenPair pair);

/* Read a tokenizer's files into an empty tokenizer: vocab.json and merges.txt in a folder, or a
 * tiktoken file. ERR_NOINPUT, ERR_IO, ERR_DATA. */
Status tokenizer_read_folder(Tokenizer *t, const char *path);
Status tokenizer_read_tiktoken(Tokenizer *t, const char *path);

#endif
