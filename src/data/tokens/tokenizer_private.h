/* A tokenizer's tables, and the functions that fill them from its files. */
#ifndef WEFT_DATA_TOKENIZER_PRIVATE_H
#define WEFT_DATA_TOKENIZER_PRIVATE_H

#include "data/tokenizer.h"

enum {
    /* 1 + the largest possible id */
    TOKENIZER_IDS_MAX = 1 << 22,
    /* largest number of bytes of each part of a pair in merges.txt, and of a token in a tiktoken
     * file */
    TOKEN_BYTES_MAX = 1024,
    /* largest number of bytes of a file */
    TOKENIZER_FILE_MAX = 1 << 26,
};
#define END_OF_TEXT "<|endoftext|>"

/* Two tokens that are merged into one. Pairs of a lower rank are merged first. left -1: an empty
 * entry of the table. */
typedef struct TokenPair {
    int32_t left, right, rank, merged;
} TokenPair;
/* Sizes of a direct-mapped cache of encoded words. Longer words and words of more tokens are not
 * cached; an entry has 64 bytes, a cache line. */
enum { CACHE_WORD_BYTES = 27, CACHE_TOKENS = 8, CACHE_ENTRIES = 1 << 16 };
/* a word and its tokens */
typedef struct CachedWord {
    /* bytes of the word; 0: an empty entry */
    uint8_t bytes;
    /* number of its tokens */
    uint8_t count;
    char word[CACHE_WORD_BYTES];
    int32_t token[CACHE_TOKENS];
} CachedWord;

struct Tokenizer {
    /* number of ids; an id may have no token, and then no bytes */
    int64_t count;
    /* owned: bytes of all tokens; those of token i are text[start[i]] to text[start[i + 1] - 1] */
    char *text;
    /* owned: offsets in text, count + 1 entries */
    int64_t *start;
    /* id of each single byte */
    int32_t byte[256];
    /* id of <|endoftext|>; -1: none */
    int32_t end_of_text;
    /* owned: hash table of pairs with linear probing */
    TokenPair *pair;
    /* entries of pair, a power of two */
    int64_t pair_room;
    /* owned: hash table that finds ids by bytes, with linear probing; -1: an empty entry */
    int32_t *slot;
    /* entries of slot, a power of two */
    int64_t slot_room;
    /* owned: CACHE_ENTRIES entries */
    CachedWord *cache;
    /* tokenizer_hash */
    char hash[17];
};

/* a token as it was read from a file */
typedef struct FileToken {
    int64_t id;
    /* owned by the reader of the file */
    char *bytes;
    int length;
    /* position in the file, for messages: line, or number of the entry */
    int64_t position;
} FileToken;
/* Copies all tokens of a file to the tables; sorts token by id. unit: name of the unit of
 * positions, "line" or "token". ERR_DATA: an id or a token occurs twice, or a single byte has no
 * token. */
Status tokenizer_add_tokens(Tokenizer *t, const char *path, const char *unit, FileToken *token,
                            int64_t count);
/* Returns the id of the token with these bytes; -1: there is none. */
int32_t tokenizer_find(const Tokenizer *t, const char *bytes, size_t length);
/* Allocates the table for at most `pairs` pairs. Called once, before tokenizer_add_pair. */
void tokenizer_new_pairs(Tokenizer *t, int64_t pairs);
/* Adds a pair. Of several pairs of the same tokens, the pair with the lowest rank is kept. */
void tokenizer_add_pair(Tokenizer *t, TokenPair pair);

/* Read a tokenizer's files into an empty tokenizer: vocab.json and merges.txt in a folder, or a
 * tiktoken file. ERR_NOINPUT, ERR_IO, ERR_DATA. */
Status tokenizer_read_folder(Tokenizer *t, const char *path);
Status tokenizer_read_tiktoken(Tokenizer *t, const char *path);

#endif
