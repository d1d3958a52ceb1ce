/* Reads tokenizers: vocab.json (token: number) with merges.txt (one pair per line, in the order of
 * merging), or a tiktoken file (base64 of a token, and its number, which is its rank). Refuses
 * vocabularies without all single bytes, repeated numbers or tokens, and merges whose parts or
 * result are not tokens. */
#include "tokenizer_private.h"

#include "config.h"

#include <string.h>

typedef struct Names {
    int64_t count, room;
    /* owned */
    NamedToken *token;
} Names;

static void names_fini(Names *n)
{
    for (int64_t i = 0; i < n->count; ++i) mem_free(&n->token[i].bytes);
    mem_free(&n->token);
}

/* Appends a token with a copy of its bytes. */
static void names_add(Names *n, const char *bytes, int length, int64_t id, int64_t place)
{
    if (n->count == n->room) {
        n->room = 2 * n->room + 256;
        n->token = mem_resize(n->token, (size_t)n->room * sizeof *n->token);
    }
    char *copy = mem_new((size_t)length + 1);
    memcpy(copy, bytes, (size_t)length);
    n->token[n->count++] = (NamedToken){.id = id, .bytes = copy, .length = length, .place = place};
}

/* ---- vocab.json and merges.txt ---- */

/* Returns the byte that a character stands for. GPT-2 writes visible bytes as themselves and the
 * others, in order, as U+0100 and following. -1: the character stands for no byte. */
static int byte_of(int c)
{
    if ((c >= 33 && c <= 126) || (c >= 161 && c <= 172) || (c >= 174 && c <= 255)) return c;
    const int hidden = c - 256;
    if (hidden < 0 || hidden > 67) return -1;
    return hidden < 33 ? hidden : hidden < 67 ? 127 + hidden - 33 : 173;
}

/* Converts UTF-8 text to the bytes it stands for, in place; returns their number, -1 if it is
 * invalid. */
static int to_bytes(char *text, size_t length)
{
    const unsigned char *p = (const unsigned char *)text;
    int n = 0;
    for (size_t i = 0; i < length;) {
        int c = p[i];
        bool two = c >= 0xc2 && c <= 0xdf && i + 1 < length && (p[i + 1] & 0xc0) == 0x80;
        if (c >= 0x80 && !two) return -1;
        if (two) c = (c & 0x1f) << 6 | (p[i + 1] & 0x3f);
        i += two ? 2 : 1;
        int byte = byte_of(c);
        if (byte < 0) return -1;
        text[n++] = (char)byte;
    }
    return n;
}

/* Reads one entry "token": number; its place is its position among the entries. */
static Status read_entry(JsonScan *s, Names *names)
{
    char *key = NULL;
    int64_t id = 0;
    TRY(json_scan_key(s, &key));
    Status st = json_scan_count(s, &id);
    if (st == OK && id >= TOKENIZER_TOKENS)
        st = json_scan_fail(s, "token number %lld: at most %d are taken", (long long)id,
                            TOKENIZER_TOKENS - 1);
    int length = st == OK ? to_bytes(key, strlen(key)) : 0;
    if (st == OK && length < 1)
        st = json_scan_fail(s,
                            "token '%s' has a character that stands for no byte: this is no "
                            "vocabulary like GPT-2's",
                            key);
    if (st == OK) names_add(names, key, length, id, names->count + 1);
    mem_free(&key);
    return st;
}

static Status read_vocab(Tokenizer *t, const char *path)
{
    char *text = NULL;
    size_t bytes;
    bool more;
    Names names = {0};
    TRY(file_text(path, TOKENIZER_FILE_MAX, &text, &bytes));
    JsonScan s = json_scan(path, text, bytes);
    Status st = json_scan_open(&s, '{', &more);
    while (st == OK && more) {
        st = read_entry(&s, &names);
        if (st == OK) st = json_scan_more(&s, '}', &more);
    }
    if (st == OK) st = json_scan_end(&s);
    if (st == OK) st = tokenizer_take(t, path, "token", names.token, names.count);
    names_fini(&names);
    mem_free(&text);
    return st;
}

/* Returns the next line of a text, with a zero at its end; NULL: there is none. */
static char *next_line(char **at, char *end)
{
    char *line = *at;
    if (line >= end) return NULL;
    char *stop = memchr(line, '\n', (size_t)(end - line));
    *at = stop ? stop + 1 : end;
    if (!stop) stop = end;
    if (stop > line && stop[-1] == '\r') --stop;
    *stop = 0;
    return line;
}

static Status read_merge(Tokenizer *t, const char *path, int64_t number, int32_t rank, char *line)
{
    char *space = strchr(line, ' '), both[2 * TOKENIZER_BYTES];
    int a = -1, b = -1;
    if (space && space > line && space[1] && !strchr(space + 1, ' ')) {
        a = to_bytes(line, (size_t)(space - line));
        b = to_bytes(space + 1, strlen(space + 1));
    }
    if (a < 1 || b < 1 || a > TOKENIZER_BYTES || b > TOKENIZER_BYTES)
        return fail(ERR_DATA, "%s: line %lld: two tokens with a blank between them are wanted",
                    path, (long long)number);
    memcpy(both, line, (size_t)a);
    memcpy(both + a, space + 1, (size_t)b);
    TokenPair pair = {tokenizer_find(t, line, (size_t)a), tokenizer_find(t, space + 1, (size_t)b),
                      rank, tokenizer_find(t, both, (size_t)(a + b))};
    if (pair.left < 0 || pair.right < 0 || pair.merged < 0)
        return fail(ERR_DATA, "%s: line %lld: %s no token of vocab.json", path, (long long)number,
                    pair.left < 0    ? "the first one is"
                    : pair.right < 0 ? "the second one is"
                                     : "both together are");
    tokenizer_pair_add(t, pair);
    return OK;
}

static Status read_merges(Tokenizer *t, const char *path)
{
    char *text = NULL;
    size_t bytes;
    Status st = file_text(path, TOKENIZER_FILE_MAX, &text, &bytes);
    int64_t lines = 1, number = 0;
    int32_t rank = 0;
    for (size_t i = 0; st == OK && i < bytes; ++i) lines += text[i] == '\n';
    if (st == OK && lines > TOKENIZER_TOKENS)
        st = fail(ERR_DATA, "%s: has %lld lines, at most %d merges are taken", path,
                  (long long)lines, TOKENIZER_TOKENS);
    if (st == OK) tokenizer_pair_room(t, lines);
    char *at = text;
    for (char *line; st == OK && (line = next_line(&at, text + bytes));) {
        ++number;
        if (!*line || (number == 1 && !strncmp(line, "#version", 8))) continue;
        st = read_merge(t, path, number, rank++, line);
    }
    mem_free(&text);
    return st;
}

Status tokenizer_read_folder(Tokenizer *t, const char *path)
{
    char *vocab = mem_format("%s/vocab.json", path), *merges = mem_format("%s/merges.txt", path);
    Status st = read_vocab(t, vocab);
    if (st == OK) st = read_merges(t, merges);
    mem_free(&vocab);
    mem_free(&merges);
    return st;
}

/* ---- tiktoken ---- */

static int base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Decodes n characters in place; returns the number of bytes, -1 if it is not base64. */
static int from_base64(char *text, size_t n)
{
    int bytes = 0;
    if (n == 0 || n % 4) return -1;
    for (size_t i = 0; i < n; i += 4) {
        int digit[4], pad = 0;
        for (int k = 0; k < 4; ++k) {
            digit[k] = base64_digit(text[i + (size_t)k]);
            if (text[i + (size_t)k] == '=' && i + 4 == n && k > 1)
                digit[k] = 0, ++pad;
            else if (pad)
                return -1;
            if (digit[k] < 0) return -1;
        }
        uint32_t all = (uint32_t)(digit[0] << 18 | digit[1] << 12 | digit[2] << 6 | digit[3]);
        for (int k = 0; k < 3 - pad; ++k) text[bytes++] = (char)(all >> (16 - 8 * k));
    }
    return bytes;
}

static Status read_rank(const char *path, int64_t number, char *line, Names *names)
{
    char *space = strchr(line, ' ');
    const char *at = space ? space + 1 : "";
    int64_t id;
    int length = space ? from_base64(line, (size_t)(space - line)) : -1;
    bool whole = whole_read(&at, 0, INT64_MAX, &id) && !*at;
    if (length < 1 || length > TOKENIZER_BYTES || !whole)
        return fail(ERR_DATA,
                    "%s: line %lld: a token in base64 and its number are wanted, as in a tiktoken "
                    "file",
                    path, (long long)number);
    if (id >= TOKENIZER_TOKENS)
        return fail(ERR_DATA, "%s: line %lld: token number %lld: at most %d are taken", path,
                    (long long)number, (long long)id, TOKENIZER_TOKENS - 1);
    names_add(names, line, length, id, number);
    return OK;
}

/* Adds every pair of tokens that together are a third token; its number is the pair's rank. */
static void add_splits(Tokenizer *t)
{
    int64_t splits = 0;
    for (int turn = 0; turn < 2; ++turn) {
        if (turn) tokenizer_pair_room(t, splits);
        for (int32_t id = 0; id < t->count; ++id) {
            size_t n;
            const char *text = tokenizer_bytes(t, id, &n);
            for (size_t k = 1; k < n; ++k) {
                int32_t left = tokenizer_find(t, text, k);
                int32_t right = left < 0 ? -1 : tokenizer_find(t, text + k, n - k);
                if (right < 0) continue;
                ++splits;
                if (turn) tokenizer_pair_add(t, (TokenPair){left, right, id, id});
            }
        }
    }
}

/* Adds <|endoftext|> if the file lacks it, as usual, with the first free number: r50k_base's
 * 50256. */
static void add_end_of_text(Names *names)
{
    enum { LENGTH = sizeof END_OF_TEXT - 1 };
    int64_t id = 0;
    char *taken = mem_new((size_t)names->count + 1);
    bool found = false;
    for (int64_t i = 0; i < names->count; ++i) {
        const NamedToken *n = &names->token[i];
        if (n->id < names->count) taken[n->id] = 1;
        found = found || (n->length == LENGTH && memcmp(n->bytes, END_OF_TEXT, LENGTH) == 0);
    }
    while (taken[id]) ++id;
    mem_free(&taken);
    if (!found) names_add(names, END_OF_TEXT, (int)strlen(END_OF_TEXT), id, 0);
}

Status tokenizer_read_ranks(Tokenizer *t, const char *path)
{
    char *text = NULL;
    size_t bytes;
    int64_t number = 0;
    Names names = {0};
    TRY(file_text(path, TOKENIZER_FILE_MAX, &text, &bytes));
    char *at = text;
    Status st = OK;
    for (char *line; st == OK && (line = next_line(&at, text + bytes));)
        if (++number && *line) st = read_rank(path, number, line, &names);
    if (st == OK && names.count == 0) st = fail(ERR_DATA, "%s: holds no token", path);
    if (st == OK) {
        add_end_of_text(&names);
        st = tokenizer_take(t, path, "line", names.token, names.count);
    }
    if (st == OK) add_splits(t);
    names_fini(&names);
    mem_free(&text);
    return st;
}
