/* A tokenizer's tables, and what fills them. */
#ifndef WEFT_DATA_TOKENIZER_PRIVATE_H
#define WEFT_DATA_TOKENIZER_PRIVATE_H

#include "data/tokenizer.h"

enum { TOKENIZER_TOKENS = 1 << 22, TOKENIZER_BYTES = 1024, TOKENIZER_FILE = 1 << 26 };
#define END_OF_TEXT "<|endoftext|>"

/* Two neighbours that become one; rank: which go first. Free where left is -1. */
typedef struct TokenPair {
    int32_t left, right, rank, merged;
} TokenPair;
/* A word that was encoded before. */
enum { CACHE_WORD = 27, CACHE_TOKENS = 8, CACHE_ENTRIES = 1 << 16 };
typedef struct CachedWord {
    uint8_t bytes, count;
    char word[CACHE_WORD];
    int32_t token[CACHE_TOKENS];
} CachedWord;

struct Tokenizer {
    /* of token i: text + start[i] .. text + start[i + 1] once they are all there; owned */
    int64_t count;
    char *text;
    int64_t *start;
    /* of every byte */
    int32_t byte[256];
    int32_t end_of_text;
    /* owned, open addressing: room is a power of two */
    TokenPair *pair;
    int64_t pair_room;
    /* likewise: tokens by their bytes, -1: free */
    int32_t *slot;
    int64_t slot_room;
    /* owned, CACHE_ENTRIES */
    CachedWord *cache;
    char hash[17];
};

/* A token that a file names. */
typedef struct NamedToken {
    int64_t id;
    /* owned by the reader: tokenizer_take copies them */
    char *bytes;
    int length;
    /* where in the file, for messages */
    int64_t place;
} NamedToken;
/* All of a file's tokens into the tables; sorts named. place: "line", "token". ERR_DATA: a number
 * twice, bytes twice, a single byte that has none. */
Status tokenizer_take(Tokenizer *t, const char *path, const char *place, NamedToken *named,
                      int64_t count);
/* -1: there is none of these bytes. */
int32_t tokenizer_find(const Tokenizer *t, const char *bytes, size_t length);
/* Room for so many pairs, then each; of two of the same the lower rank holds. */
void tokenizer_pair_room(Tokenizer *t, int64_t pairs);
void tokenizer_pair_add(Tokenizer *t, TokenPair pair);

/* Fill an empty tokenizer. */
Status tokenizer_read_folder(Tokenizer *t, const char *path);
Status tokenizer_read_ranks(Tokenizer *t, const char *path);

#endif
