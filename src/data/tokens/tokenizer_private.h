/* A tokenizer's tables, and the functions that fill them. */
#ifndef WEFT_DATA_TOKENIZER_PRIVATE_H
#define WEFT_DATA_TOKENIZER_PRIVATE_H

#include "data/tokenizer.h"

enum { TOKENIZER_TOKENS = 1 << 22, TOKENIZER_BYTES = 1024, TOKENIZER_FILE_MAX = 1 << 26 };
#define END_OF_TEXT "<|endoftext|>"

/* two tokens that are merged into one; lower ranks first. left -1: a free entry */
typedef struct TokenPair {
    int32_t left, right, rank, merged;
} TokenPair;
/* a word that was encoded before, in a direct-mapped cache */
enum { CACHE_WORD = 27, CACHE_TOKENS = 8, CACHE_ENTRIES = 1 << 16 };
typedef struct CachedWord {
    uint8_t bytes, count;
    char word[CACHE_WORD];
    int32_t token[CACHE_TOKENS];
} CachedWord;

struct Tokenizer {
    /* owned: bytes of token i are text + start[i] to text + start[i + 1] */
    int64_t count;
    char *text;
    int64_t *start;
    /* token of each single byte */
    int32_t byte[256];
    int32_t end_of_text;
    /* owned: hash table with open addressing; pair_room is a power of two */
    TokenPair *pair;
    int64_t pair_room;
    /* owned: hash table of tokens by their bytes; -1: a free entry */
    int32_t *slot;
    int64_t slot_room;
    /* owned: CACHE_ENTRIES */
    CachedWord *cache;
    char hash[17];
};

/* a token read from a file */
typedef struct NamedToken {
    int64_t id;
    /* owned by the reader; tokenizer_take copies them */
    char *bytes;
    int length;
    /* position in the file, for messages */
    int64_t place;
} NamedToken;
/* Stores all tokens of a file in the tables; sorts named. place: what positions count, "line" or
 * "token". ERR_DATA: a number or a token occurs twice, or a single byte has no token. */
Status tokenizer_take(Tokenizer *t, const char *path, const char *place, NamedToken *named,
                      int64_t count);
/* Returns the token with these bytes; -1: there is none. */
int32_t tokenizer_find(const Tokenizer *t, const char *bytes, size_t length);
/* tokenizer_pair_room allocates the table; then tokenizer_pair_add adds each pair. The lower rank
 * of equal pairs is kept. */
void tokenizer_pair_room(Tokenizer *t, int64_t pairs);
void tokenizer_pair_add(Tokenizer *t, TokenPair pair);

/* Read a tokenizer's files into an empty tokenizer. */
Status tokenizer_read_folder(Tokenizer *t, const char *path);
Status tokenizer_read_ranks(Tokenizer *t, const char *path);

#endif
