/* Reads a tokenizer from one of two kinds of files. One is vocab.json ("token": id) with merges.txt
 * (one pair per line; pairs of earlier lines are merged first). The other is a tiktoken file (one
 * token per line, in base64, with its id, which is also its rank). Ids may have gaps; an id in a
 * gap has no token. Refuses vocabularies that lack a token for one of the 256 single bytes,
 * repeated ids or tokens, and merges whose parts or result are not tokens. */
#include "tokenizer_private.h"

#include "config.h"
#include "pretoken.h"

#include <string.h>

/* the tokens of a file */
typedef struct FileTokens {
    /* number of tokens, and of entries for which `token` has memory */
    int64_t count, room;
    /* [count]; owned */
    FileToken *token;
} FileTokens;

static void tokens_fini(FileTokens *list)
{
    for (int64_t i = 0; i < list->count; ++i) mem_free(&list->token[i].bytes);
    mem_free(&list->token);
}

/* Appends a token with a copy of its bytes. */
static void tokens_add(FileTokens *list, const char *bytes, int length, int64_t id,
                       int64_t position)
{
    if (list->count == list->room) {
        list->room = 2 * list->room + 256;
        list->token = mem_resize(list->token, (size_t)list->room * sizeof *list->token);
    }
    char *copy = mem_new((size_t)length + 1);
    memcpy(copy, bytes, (size_t)length);
    list->token[list->count++] =
        (FileToken){.id = id, .bytes = copy, .length = length, .position = position};
}

/* Returns the text after UTF-8's byte order mark, if it begins with one. */
static char *skip_byte_order_mark(char *text)
{
    return strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text;
}

/* ---- vocab.json and merges.txt ---- */

/* Returns the byte that a character of GPT-2's files represents; -1: it represents no byte. Visible
 * bytes of Latin-1 are represented by themselves. All other bytes (0 to 32, 127 to 160 and 173) are
 * represented, in order, by U+0100 and the characters after it. */
static int byte_of_char(int c)
{
    if ((c >= 33 && c <= 126) || (c >= 161 && c <= 172) || (c >= 174 && c <= 255)) return c;
    const int i = c - 256;
    if (i < 0 || i > 67) return -1;
    return i < 33 ? i : i < 67 ? 127 + i - 33 : 173;
}

/* Converts UTF-8 text to the bytes that its characters represent, and returns the number of bytes.
 * Returns -1 if the text is invalid, or if a character represents no byte. bytes: memory for
 * `length` bytes; may be `text`. */
static int decode_chars(const char *text, size_t length, char *bytes)
{
    const unsigned char *p = (const unsigned char *)text;
    int n = 0;
    for (size_t i = 0; i < length;) {
        int c = p[i];
        bool two = c >= 0xc2 && c <= 0xdf && i + 1 < length && (p[i + 1] & 0xc0) == 0x80;
        if (c >= 0x80 && !two) return -1;
        if (two) c = (c & 0x1f) << 6 | (p[i + 1] & 0x3f);
        i += two ? 2 : 1;
        int byte = byte_of_char(c);
        if (byte < 0) return -1;
        bytes[n++] = (char)byte;
    }
    return n;
}

/* Reads one entry, "token": id. The token's position is the number of the entry. */
static Status read_entry(JsonScan *s, FileTokens *tokens)
{
    char *key = NULL;
    int64_t id = 0;
    TRY(json_scan_key(s, &key));
    Status st = json_scan_count(s, &id);
    if (st == OK && id >= TOKENIZER_IDS_MAX)
        st = json_scan_fail(s, "token id %lld: the largest possible is %d", (long long)id,
                            TOKENIZER_IDS_MAX - 1);
    char *bytes = mem_new(strlen(key) + 1);
    int length = decode_chars(key, strlen(key), bytes);
    if (st == OK && length == 0) st = json_scan_fail(s, "a token is empty");
    if (st == OK && length < 0)
        st = json_scan_fail(s,
                            "token '%s' has a character that stands for no byte: this is no "
                            "vocabulary like GPT-2's",
                            key);
    if (st == OK) tokens_add(tokens, bytes, length, id, tokens->count + 1);
    mem_free(&bytes);
    mem_free(&key);
    return st;
}

static Status read_vocab(Tokenizer *t, const char *path)
{
    char *text = NULL;
    size_t bytes;
    bool more;
    FileTokens tokens = {0};
    TRY(file_text(path, TOKENIZER_FILE_MAX, &text, &bytes));
    JsonScan s = json_scan(path, text, bytes);
    Status st = json_scan_open(&s, '{', &more);
    while (st == OK && more) {
        st = read_entry(&s, &tokens);
        if (st == OK) st = json_scan_more(&s, '}', &more);
    }
    if (st == OK) st = json_scan_end(&s);
    if (st == OK) st = tokenizer_add_tokens(t, path, "token", tokens.token, tokens.count);
    tokens_fini(&tokens);
    mem_free(&text);
    return st;
}

/* Returns the next line of a text, with a zero at its end, and moves *at behind the line. NULL:
 * there is no line. */
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

/* Adds the pair in line `number` of merges.txt. Modifies the line. */
static Status read_merge(Tokenizer *t, const char *path, int64_t number, int32_t rank, char *line)
{
    char *space = strchr(line, ' '), merged[2 * TOKEN_BYTES_MAX];
    int left_bytes = -1, right_bytes = -1;
    if (space && space > line && space[1] && !strchr(space + 1, ' ')) {
        left_bytes = decode_chars(line, (size_t)(space - line), line);
        right_bytes = decode_chars(space + 1, strlen(space + 1), space + 1);
    }
    if (left_bytes < 1 || right_bytes < 1 || left_bytes > TOKEN_BYTES_MAX ||
        right_bytes > TOKEN_BYTES_MAX)
        return fail(ERR_DATA, "%s: line %lld: expected two tokens with a blank between them", path,
                    (long long)number);
    memcpy(merged, line, (size_t)left_bytes);
    memcpy(merged + left_bytes, space + 1, (size_t)right_bytes);
    TokenPair pair = {.left = tokenizer_find(t, line, (size_t)left_bytes),
                      .right = tokenizer_find(t, space + 1, (size_t)right_bytes),
                      .rank = rank,
                      .merged = tokenizer_find(t, merged, (size_t)(left_bytes + right_bytes))};
    if (pair.left < 0 || pair.right < 0 || pair.merged < 0)
        return fail(ERR_DATA, "%s: line %lld: %s no token of vocab.json", path, (long long)number,
                    pair.left < 0    ? "the first part is"
                    : pair.right < 0 ? "the second part is"
                                     : "the two together are");
    tokenizer_add_pair(t, pair);
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
    if (st == OK && lines > TOKENIZER_IDS_MAX)
        st = fail(ERR_DATA, "%s: has %lld lines, but at most %d merges are possible", path,
                  (long long)lines, TOKENIZER_IDS_MAX);
    if (st == OK) tokenizer_new_pairs(t, lines);
    char *at = st == OK ? skip_byte_order_mark(text) : NULL;
    for (char *line; st == OK && (line = next_line(&at, text + bytes));) {
        ++number;
        if (!*line || (number == 1 && !strncmp(line, "#version", 8))) continue;
        st = read_merge(t, path, number, rank++, line);
    }
    mem_free(&text);
    return st;
}

/* Returns whether a token can be a part of a word of GPT-2's pattern. Also returns true for tokens
 * that are not examined: those with characters other than ASCII, and those that begin with an
 * apostrophe, such as 'r, a part of the word 're. */
static bool is_part_of_word(const char *token, size_t bytes)
{
    const unsigned char *text = (const unsigned char *)token;
    if (*text == '\'') return true;
    for (size_t i = 0; i < bytes; ++i)
        if (text[i] >= 0x80) return true;
    return first_word_bytes(text, bytes, true) == bytes;
}

/* Warns if a token consists of several words of GPT-2's pattern, as `.get` in cl100k_base. Merges
 * never cross words, so such a tokenizer splits texts by another pattern. */
static void warn_of_pattern(const Tokenizer *t, const char *path)
{
    int32_t first = -1;
    for (int64_t i = 0; i < t->pair_room; ++i) {
        size_t bytes;
        const TokenPair *pair = &t->pair[i];
        if (pair->left < 0 || (first >= 0 && first < pair->merged)) continue;
        const char *token = tokenizer_bytes(t, pair->merged, &bytes);
        if (!is_part_of_word(token, bytes)) first = pair->merged;
    }
    if (first >= 0)
        log_warn("%s: token %d consists of several words of GPT-2's pattern, so this tokenizer "
                 "has another pattern: weft splits texts by GPT-2's, and its tokens differ from "
                 "those of other programs",
                 path, first);
}

Status tokenizer_read_folder(Tokenizer *t, const char *path)
{
    char *vocab = mem_format("%s/vocab.json", path), *merges = mem_format("%s/merges.txt", path);
    Status st = read_vocab(t, vocab);
    if (st == OK) st = read_merges(t, merges);
    if (st == OK) warn_of_pattern(t, path);
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

/* Decodes n characters of base64 in place. Returns the number of bytes; -1: the text is not
 * base64. */
static int decode_base64(char *text, size_t n)
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

/* Reads the token and the id in line `number` of a tiktoken file. */
static Status read_token_line(const char *path, int64_t number, char *line, FileTokens *tokens)
{
    char *space = strchr(line, ' ');
    const char *at = space ? space + 1 : "";
    int64_t id;
    int length = space ? decode_base64(line, (size_t)(space - line)) : -1;
    bool whole = whole_read(&at, 0, INT64_MAX, &id) && !*at;
    if (length < 1 || length > TOKEN_BYTES_MAX || !whole)
        return fail(ERR_DATA,
                    "%s: line %lld: expected a token in base64 and its id, as in a tiktoken "
                    "file",
                    path, (long long)number);
    if (id >= TOKENIZER_IDS_MAX)
        return fail(ERR_DATA, "%s: line %lld: token id %lld: the largest possible is %d", path,
                    (long long)number, (long long)id, TOKENIZER_IDS_MAX - 1);
    tokens_add(tokens, line, length, id, number);
    return OK;
}

/* Adds every pair of tokens that together are a third token; the id of the third token is the
 * pair's rank. Counts the pairs first, to allocate the table. */
static void add_pairs(Tokenizer *t)
{
    int64_t pairs = 0;
    for (int add = 0; add < 2; ++add) {
        if (add) tokenizer_new_pairs(t, pairs);
        for (int32_t id = 0; id < t->count; ++id) {
            size_t n;
            const char *text = tokenizer_bytes(t, id, &n);
            for (size_t k = 1; k < n; ++k) {
                int32_t left = tokenizer_find(t, text, k);
                int32_t right = left < 0 ? -1 : tokenizer_find(t, text + k, n - k);
                if (right < 0) continue;
                ++pairs;
                if (add)
                    tokenizer_add_pair(
                        t, (TokenPair){.left = left, .right = right, .rank = id, .merged = id});
            }
        }
    }
}

/* Adds <|endoftext|> with the first free id, because tiktoken's files lack it, and logs the id. For
 * r50k_base and p50k_base this id is 50256, as in tiktoken. Does nothing if the file has
 * <|endoftext|>. */
static void add_end_of_text(FileTokens *tokens, const char *path)
{
    enum { LENGTH = sizeof END_OF_TEXT - 1 };
    int64_t id = 0;
    bool *taken = mem_new((size_t)(tokens->count + 1) * sizeof *taken);
    bool found = false;
    for (int64_t i = 0; i < tokens->count; ++i) {
        const FileToken *t = &tokens->token[i];
        if (t->id < tokens->count) taken[t->id] = true;
        found = found || (t->length == LENGTH && memcmp(t->bytes, END_OF_TEXT, LENGTH) == 0);
    }
    while (taken[id]) ++id;
    mem_free(&taken);
    if (found) return;
    tokens_add(tokens, END_OF_TEXT, LENGTH, id, 0);
    log_info("%s: lacks " END_OF_TEXT ", which gets the first free id, %lld", path, (long long)id);
}

Status tokenizer_read_tiktoken(Tokenizer *t, const char *path)
{
    char *text = NULL;
    size_t bytes;
    int64_t number = 0;
    FileTokens tokens = {0};
    TRY(file_text(path, TOKENIZER_FILE_MAX, &text, &bytes));
    char *at = skip_byte_order_mark(text);
    Status st = OK;
    for (char *line; st == OK && (line = next_line(&at, text + bytes));)
        if (++number && *line) st = read_token_line(path, number, line, &tokens);
    if (st == OK && tokens.count == 0) st = fail(ERR_DATA, "%s: has no tokens", path);
    if (st == OK) {
        add_end_of_text(&tokens, path);
        st = tokenizer_add_tokens(t, path, "line", tokens.token, tokens.count);
    }
    if (st == OK) {
        add_pairs(t);
        warn_of_pattern(t, path);
    }
    tokens_fini(&tokens);
    mem_free(&text);
    return st;
}
