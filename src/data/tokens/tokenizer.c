/* Keeps a tokenizer's tables, and encodes words by byte-pair encoding: as long as neighbouring
 * tokens can be merged, the pair with the lowest rank is merged; if there are several such pairs,
 * the leftmost. Words of at most CACHE_WORD_BYTES bytes are looked up in a cache first. In words of
 * at most SHORT_WORD_MAX bytes all pairs are searched after each merge. Longer words use a heap, so
 * that a megabyte of one letter takes no longer than other text. */
#include "tokenizer_private.h"

#include "pretoken.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

enum {
    /* largest number of bytes of a word that is encoded without the heap */
    SHORT_WORD_MAX = 64,
    /* rank of a pair that is not merged */
    NO_RANK = INT32_MAX,
};

void token_list_fini(TokenList *list)
{
    mem_free(&list->token);
    *list = (TokenList){0};
}

static void add_token(TokenList *list, int32_t token)
{
    if (list->count == list->room) {
        list->room = 2 * list->room + 64;
        list->token = mem_resize(list->token, (size_t)list->room * sizeof *list->token);
    }
    list->token[list->count++] = token;
}

/* ---- tables ---- */

/* Returns the size of a hash table for `count` entries: a power of two, at most half full. */
static int64_t table_room(int64_t count)
{
    int64_t room = 16;
    while (room < 2 * count) room *= 2;
    return room;
}

static uint64_t pair_hash(int32_t left, int32_t right)
{
    uint64_t x = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

void tokenizer_new_pairs(Tokenizer *t, int64_t pairs)
{
    t->pair_room = table_room(pairs);
    t->pair = mem_new((size_t)t->pair_room * sizeof *t->pair);
    for (int64_t i = 0; i < t->pair_room; ++i) t->pair[i].left = -1;
}

/* Returns the entry of a pair or, if the pair is not in the table, the empty entry where it
 * belongs. */
static TokenPair *pair_entry(const Tokenizer *t, int32_t left, int32_t right)
{
    uint64_t i = pair_hash(left, right), mask = (uint64_t)t->pair_room - 1;
    for (;; ++i) {
        TokenPair *p = &t->pair[i & mask];
        if (p->left < 0 || (p->left == left && p->right == right)) return p;
    }
}

void tokenizer_add_pair(Tokenizer *t, TokenPair pair)
{
    TokenPair *p = pair_entry(t, pair.left, pair.right);
    if (p->left < 0 || p->rank > pair.rank) *p = pair;
}

/* Returns the pair of two tokens; NULL: the two are not merged. */
static const TokenPair *find_pair(const Tokenizer *t, int32_t left, int32_t right)
{
    const TokenPair *p = pair_entry(t, left, right);
    return p->left < 0 ? NULL : p;
}

const char *tokenizer_bytes(const Tokenizer *t, int32_t token, size_t *bytes)
{
    *bytes = 0;
    if (token < 0 || token >= t->count) return "";
    *bytes = (size_t)(t->start[token + 1] - t->start[token]);
    return t->text + t->start[token];
}

/* Returns the slot of the token with these bytes or, if there is no such token, the empty slot
 * where it belongs. */
static int32_t *find_slot(const Tokenizer *t, const char *bytes, size_t length)
{
    uint64_t i = XXH3_64bits(bytes, length), mask = (uint64_t)t->slot_room - 1;
    for (;; ++i) {
        int32_t *slot = &t->slot[i & mask];
        size_t slot_length;
        if (*slot < 0) return slot;
        const char *text = tokenizer_bytes(t, *slot, &slot_length);
        if (slot_length == length && memcmp(text, bytes, length) == 0) return slot;
    }
}

int32_t tokenizer_find(const Tokenizer *t, const char *bytes, size_t length)
{
    return *find_slot(t, bytes, length);
}

static int by_id(const void *a, const void *b)
{
    const FileToken *x = a, *y = b;
    return x->id != y->id ? (x->id < y->id ? -1 : 1) : x->position < y->position ? -1 : 1;
}

/* Copies the bytes of all tokens, which must be sorted by id, and sets text, start and count. */
static void copy_bytes(Tokenizer *t, const FileToken *token, int64_t count)
{
    int64_t bytes = 0, id = 0;
    for (int64_t i = 0; i < count; ++i) bytes += token[i].length;
    t->count = count ? token[count - 1].id + 1 : 0;
    t->text = mem_new((size_t)bytes + 1);
    t->start = mem_new((size_t)(t->count + 1) * sizeof *t->start);
    bytes = 0;
    for (int64_t i = 0; i < count; ++i) {
        while (id <= token[i].id) t->start[id++] = bytes;
        memcpy(t->text + bytes, token[i].bytes, (size_t)token[i].length);
        bytes += token[i].length;
    }
    t->start[t->count] = bytes;
}

Status tokenizer_add_tokens(Tokenizer *t, const char *path, const char *unit, FileToken *token,
                            int64_t count)
{
    if (count > 0) qsort(token, (size_t)count, sizeof *token, by_id);
    for (int64_t i = 1; i < count; ++i)
        if (token[i].id == token[i - 1].id)
            return fail(ERR_DATA, "%s: %s %lld: id %lld appears twice", path, unit,
                        (long long)token[i].position, (long long)token[i].id);
    copy_bytes(t, token, count);
    t->slot_room = table_room(count);
    t->slot = mem_new((size_t)t->slot_room * sizeof *t->slot);
    memset(t->slot, 0xff, (size_t)t->slot_room * sizeof *t->slot);
    for (int64_t i = 0; i < count; ++i) {
        int32_t *slot = find_slot(t, token[i].bytes, (size_t)token[i].length);
        if (*slot >= 0)
            return fail(ERR_DATA, "%s: %s %lld: the same token has ids %d and %lld", path, unit,
                        (long long)token[i].position, *slot, (long long)token[i].id);
        *slot = (int32_t)token[i].id;
    }
    for (int b = 0; b < 256; ++b) {
        const char byte = (char)b;
        t->byte_token[b] = tokenizer_find(t, &byte, 1);
        if (t->byte_token[b] < 0)
            return fail(ERR_DATA,
                        "%s: has no token for the single byte %d, so it is no byte-level tokenizer "
                        "such as GPT-2's",
                        path, b);
    }
    t->end_of_text = tokenizer_find(t, END_OF_TEXT, strlen(END_OF_TEXT));
    return OK;
}

/* ---- words ---- */

static int32_t rank_of(const Tokenizer *t, int32_t left, int32_t right)
{
    const TokenPair *p = find_pair(t, left, right);
    return p ? p->rank : NO_RANK;
}

/* Merges n tokens in place, and returns the number of tokens left. rank: scratch for n ranks;
 * rank[i] is the rank of tokens i and i + 1. */
static int merge_short(const Tokenizer *t, int32_t *token, int32_t *rank, int n)
{
    for (int i = 0; i + 1 < n; ++i) rank[i] = rank_of(t, token[i], token[i + 1]);
    for (;;) {
        int best = -1;
        for (int i = 0; i + 1 < n; ++i)
            if (rank[i] != NO_RANK && (best < 0 || rank[i] < rank[best])) best = i;
        if (best < 0) return n;
        token[best] = find_pair(t, token[best], token[best + 1])->merged;
        --n;
        memmove(token + best + 1, token + best + 2, (size_t)(n - best - 1) * sizeof *token);
        memmove(rank + best + 1, rank + best + 2, (size_t)(n - best - 1) * sizeof *rank);
        if (best > 0) rank[best - 1] = rank_of(t, token[best - 1], token[best]);
        if (best + 1 < n) rank[best] = rank_of(t, token[best], token[best + 1]);
    }
}

/* a pair in a long word, with the tokens that it had when it was pushed on the heap */
typedef struct HeapPair {
    int32_t rank, left, right;
    /* index of the left token in the word */
    int64_t at;
} HeapPair;
/* a long word as a linked list of tokens */
typedef struct LongWord {
    /* number of bytes of the word */
    int64_t n;
    /* token that begins at each byte, [n]; owned. -1: the byte is inside a token that begins before
     * it */
    int32_t *token;
    /* for each token the index of the next one, [n]; owned. n: there is none */
    int64_t *next;
    /* for each token the index of the previous one, [n]; owned. -1: there is none */
    int64_t *previous;
    /* binary heap of the pairs that can be merged; owned */
    HeapPair *heap;
    /* number of pairs in the heap */
    int64_t heap_count;
} LongWord;

/* Returns whether pair a is merged before b. */
static bool precedes(const HeapPair *a, const HeapPair *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void heap_push(LongWord *w, HeapPair x)
{
    int64_t i = w->heap_count++;
    for (; i > 0 && precedes(&x, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = x;
}

static HeapPair heap_pop(LongWord *w)
{
    const HeapPair top = w->heap[0], x = w->heap[--w->heap_count];
    int64_t i = 0;
    for (int64_t child; (child = 2 * i + 1) < w->heap_count; i = child) {
        if (child + 1 < w->heap_count && precedes(&w->heap[child + 1], &w->heap[child])) ++child;
        if (!precedes(&w->heap[child], &x)) break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = x;
    return top;
}

/* Pushes the pair of the token at index `at` and the next token on the heap, if the two can be
 * merged. */
static void push_pair(const Tokenizer *t, LongWord *w, int64_t at)
{
    if (at < 0 || w->next[at] >= w->n) return;
    int32_t left = w->token[at], right = w->token[w->next[at]], rank = rank_of(t, left, right);
    if (rank != NO_RANK) heap_push(w, (HeapPair){rank, left, right, at});
}

/* Encodes a long word. The heap has fewer than n pairs at first, and each of fewer than n merges
 * pushes at most two, so it needs at most 3 n entries. Pairs whose tokens have changed since they
 * were pushed are skipped. */
static void merge_long(const Tokenizer *t, const unsigned char *text, int64_t n, TokenList *out)
{
    LongWord w = {.n = n};
    w.token = mem_new((size_t)n * sizeof *w.token);
    w.next = mem_new((size_t)n * sizeof *w.next);
    w.previous = mem_new((size_t)n * sizeof *w.previous);
    w.heap = mem_new((size_t)(3 * n) * sizeof *w.heap);
    for (int64_t i = 0; i < n; ++i) {
        w.token[i] = t->byte_token[text[i]];
        w.next[i] = i + 1;
        w.previous[i] = i - 1;
    }
    for (int64_t i = 0; i < n; ++i) push_pair(t, &w, i);
    while (w.heap_count > 0) {
        const HeapPair x = heap_pop(&w);
        const int64_t right = w.next[x.at];
        if (w.token[x.at] != x.left || right >= n || w.token[right] != x.right) continue;
        w.token[x.at] = find_pair(t, x.left, x.right)->merged;
        w.token[right] = -1;
        w.next[x.at] = w.next[right];
        if (w.next[right] < n) w.previous[w.next[right]] = x.at;
        push_pair(t, &w, w.previous[x.at]);
        push_pair(t, &w, x.at);
    }
    for (int64_t i = 0; i < n; i = w.next[i]) add_token(out, w.token[i]);
    mem_free(&w.token);
    mem_free(&w.next);
    mem_free(&w.previous);
    mem_free(&w.heap);
}

/* Appends the tokens of a word. */
static void encode_word(Tokenizer *t, const unsigned char *text, size_t n, TokenList *out)
{
    int32_t token[SHORT_WORD_MAX], rank[SHORT_WORD_MAX];
    CachedWord *cached = NULL;
    if (n > SHORT_WORD_MAX) {
        merge_long(t, text, (int64_t)n, out);
        return;
    }
    if (n <= CACHE_WORD_BYTES) {
        cached = &t->cache[XXH3_64bits(text, n) % CACHE_ENTRIES];
        if (cached->length == n && memcmp(cached->word, text, n) == 0) {
            for (int i = 0; i < cached->count; ++i) add_token(out, cached->token[i]);
            return;
        }
    }
    for (size_t i = 0; i < n; ++i) token[i] = t->byte_token[text[i]];
    int count = merge_short(t, token, rank, (int)n);
    for (int i = 0; i < count; ++i) add_token(out, token[i]);
    if (!cached || count > CACHE_TOKENS) return;
    cached->length = (uint8_t)n;
    cached->count = (uint8_t)count;
    memcpy(cached->word, text, n);
    memcpy(cached->token, token, (size_t)count * sizeof *token);
}

/* ---- texts ---- */

/* Encodes those words of n bytes of text that are complete. final: true if the text ends after
 * these bytes. Returns the number of bytes encoded. */
static size_t encode_words(Tokenizer *t, const char *text, size_t n, bool final, TokenList *out)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t at = 0, word;
    while (at < n && (word = first_word_bytes(p + at, n - at, final)) > 0) {
        encode_word(t, p + at, word, out);
        at += word;
    }
    return at;
}

/* Encodes n bytes of text. special: true makes each <|endoftext|> its token, which also ends the
 * text before it, if the tokenizer has that token. final: true if the text ends after these bytes.
 * If it is false and special is true, the last LENGTH bytes are left for the next call, since they
 * may be the beginning of <|endoftext|>. Returns the number of bytes encoded. */
static size_t encode(Tokenizer *t, const char *text, size_t n, bool special, bool final,
                     TokenList *out)
{
    enum { LENGTH = sizeof END_OF_TEXT - 1 };
    size_t at = 0;
    special = special && t->end_of_text >= 0;
    for (const char *found; special; at = (size_t)(found - text) + LENGTH) {
        found = memmem(text + at, n - at, END_OF_TEXT, LENGTH);
        if (!found) break;
        encode_words(t, text + at, (size_t)(found - text) - at, true, out);
        add_token(out, t->end_of_text);
    }
    size_t ordinary = n - at;
    if (special && !final) ordinary = ordinary < LENGTH ? 0 : ordinary - LENGTH;
    return at + encode_words(t, text + at, ordinary, final, out);
}

void tokenizer_encode(Tokenizer *t, const char *text, size_t bytes, bool special, TokenList *out)
{
    encode(t, text, bytes, special, true, out);
}

size_t tokenizer_encode_part(Tokenizer *t, const char *text, size_t bytes, bool special,
                             TokenList *out)
{
    return encode(t, text, bytes, special, false, out);
}

/* ---- the tokenizer ---- */

static void make_hash(Tokenizer *t)
{
    XXH3_state_t *state = XXH3_createState();
    if (!state) die_as(ERR_MEMORY, "out of memory");
    XXH3_64bits_reset(state);
    for (int64_t i = 0; i < t->count; ++i) {
        size_t bytes;
        const char *text = tokenizer_bytes(t, (int32_t)i, &bytes);
        const uint8_t length[2] = {(uint8_t)bytes, (uint8_t)(bytes >> 8)};
        XXH3_64bits_update(state, length, sizeof length);
        XXH3_64bits_update(state, text, bytes);
    }
    snprintf(t->hash, sizeof t->hash, "%016llx", (unsigned long long)XXH3_64bits_digest(state));
    XXH3_freeState(state);
}

Status tokenizer_open(Tokenizer **tokenizer, const char *path)
{
    struct stat about;
    Tokenizer *t = *tokenizer = mem_new(sizeof *t);
    t->end_of_text = -1;
    bool folder = stat(path, &about) == 0 && S_ISDIR(about.st_mode);
    Status st = folder ? tokenizer_read_folder(t, path) : tokenizer_read_tiktoken(t, path);
    if (st != OK) {
        tokenizer_free(tokenizer);
        return st;
    }
    t->cache = mem_new(CACHE_ENTRIES * sizeof *t->cache);
    make_hash(t);
    return OK;
}

void tokenizer_free(Tokenizer **tokenizer)
{
    Tokenizer *t = *tokenizer;
    if (!t) return;
    mem_free(&t->text);
    mem_free(&t->start);
    mem_free(&t->pair);
    mem_free(&t->slot);
    mem_free(&t->cache);
    mem_free(tokenizer);
}

int64_t tokenizer_vocab_size(const Tokenizer *t)
{
    return t->count;
}

int32_t tokenizer_end_of_text(const Tokenizer *t)
{
    return t->end_of_text;
}

const char *tokenizer_hash(const Tokenizer *t)
{
    return t->hash;
}
