/* Imports tokens: the bytes of a text, a text that a tokenizer encodes, or an array of token ids
 * that another program wrote. An array may have a known header (token_file.h) or none; files may be
 * plain or .gz. The file may be larger than memory: it is read twice in pieces, first to count
 * tokens and find the largest, then to copy. The last part of the tokens can go to a second data
 * set (--test). Refuses files of other kinds, ids that contradict the given format, and ids outside
 * the vocabulary. Also refuses sizes of files that are no multiple of a token's size or differ from
 * the header, and splits of fewer than 2 tokens. A text for a tokenizer is first encoded to a
 * temporary array, OUT.tokens.part. */
#include "import_tokens.h"

#include "../data_private.h"
#include "encode_text.h"
#include "token_file.h"

#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 20, SPLIT_TOKENS_MIN = 2, SPLITS = 2 };

typedef enum SourceKind {
    /* a text whose bytes are the tokens */
    SOURCE_BYTES,
    /* an array that this process has encoded from a text */
    SOURCE_ENCODED,
    /* an array of another program */
    SOURCE_ARRAY,
} SourceKind;

/* the file to import */
typedef struct Source {
    SourceKind kind;
    PackedFile in;
    /* path that the user gave, for messages; borrowed */
    const char *name;
    /* bits of a token. SOURCE_ARRAY: as the user gave them; 0: not given. SOURCE_BYTES: 8.
     * SOURCE_ENCODED: as the array was written */
    int bits;
    TokenFormat format;
    /* [PIECE_BYTES]; owned */
    uint8_t *buffer;
    TokenEvidence evidence;
    /* number of tokens */
    int64_t count;
    /* size of the vocabulary; 0: not known before all tokens are read */
    int64_t vocab;
    /* path of the tokenizer, borrowed; NULL: unknown */
    const char *tokenizer;
    /* identity of the tokenizer, borrowed; NULL: unknown */
    const char *tokenizer_hash;
} Source;

/* one data set to write: the training split or the test split */
typedef struct Split {
    PartFile file;
    /* number of tokens */
    int64_t count;
    /* offset of the array /tokens in the file */
    int64_t offset;
    /* bytes of a token: 1, 2 or 4 */
    int bytes;
    /* the file that is imported, which has the vocabulary and the tokenizer; borrowed */
    const Source *source;
} Split;

/* Goes back to the first token, after the header. */
static Status source_rewind(Source *s)
{
    size_t n;
    TRY(packed_rewind(&s->in));
    return packed_read(&s->in, s->buffer, (size_t)s->format.offset, &n);
}

static Status source_open(Source *s)
{
    const bool encoded = s->kind == SOURCE_ENCODED;
    size_t n;
    TRY(encoded ? packed_open_plain(&s->in, s->in.path) : packed_open(&s->in, s->in.path));
    s->buffer = mem_new(PIECE_BYTES);
    TRY(packed_read(&s->in, s->buffer, TOKEN_HEAD_MAX, &n));
    if (!encoded)
        TRY(token_file_refuse_other_kinds(s->in.path, s->buffer, n,
                                          s->in.packed ? INT64_MAX : s->in.bytes));
    if (s->kind == SOURCE_ARRAY)
        TRY(token_format_read(&s->format, s->in.path, s->buffer, n, s->bits));
    else
        s->format = (TokenFormat){.bytes = s->bits / 8, .count = -1};
    return source_rewind(s);
}

static void source_close(Source *s)
{
    packed_close(&s->in);
    mem_free(&s->buffer);
    token_evidence_fini(&s->evidence);
}

/* Reads up to count_max tokens to s->buffer. *count: number of tokens read; 0: the file has
 * ended. */
static Status source_read(Source *s, int64_t count_max, int64_t *count)
{
    const int bytes = s->format.bytes;
    const int64_t tokens_to_read =
        PIECE_BYTES / bytes < count_max ? PIECE_BYTES / bytes : count_max;
    size_t n;
    TRY(packed_read(&s->in, s->buffer, (size_t)(tokens_to_read * bytes), &n));
    if (n % (size_t)bytes != 0)
        return fail(ERR_DATA,
                    "%s: does not have a whole number of tokens of %d bits: it is truncated, or %s",
                    s->in.path, 8 * bytes, s->format.name ? "damaged" : "--bits is wrong");
    *count = (int64_t)n / bytes;
    return OK;
}

static Status token_outside(const Source *s, int64_t position, int64_t token)
{
    /* token_value returns INT64_MAX for larger values, too. */
    const char *saturated = token == INT64_MAX ? "at least " : "";
    if (token < 0 || s->vocab == 0)
        return fail(ERR_DATA, "%s: token %lld is %s%lld, and tokens are 0 to %d: %s", s->in.path,
                    (long long)position, saturated, (long long)token, INT32_MAX - 1,
                    s->format.name ? "the file is not an array of tokens, or is damaged"
                                   : "correct --bits, or the file");
    return fail(ERR_DATA,
                "%s: token %lld is %s%lld, but there are %lld in the vocabulary (0 to %lld); "
                "correct %s--vocab%s",
                s->in.path, (long long)position, saturated, (long long)token, (long long)s->vocab,
                (long long)s->vocab - 1, s->tokenizer ? "--tokenizer or " : "",
                s->format.name ? "" : " or --bits");
}

/* Checks that the file has as many tokens as its header says, and no bytes after them. */
static Status source_end(Source *s)
{
    size_t n;
    if (s->format.count < 0) return OK;
    if (s->count < s->format.count)
        return fail(ERR_DATA,
                    "%s: is truncated: it has %lld of the %lld tokens of its header (%s); fetch it "
                    "again",
                    s->in.path, (long long)s->count, (long long)s->format.count, s->format.name);
    TRY(packed_read(&s->in, s->buffer, 1, &n));
    if (n == 0) return OK;
    return fail(ERR_DATA, "%s: has more than the %lld tokens of its header (%s); fetch it again",
                s->in.path, (long long)s->format.count, s->format.name);
}

/* Counts the tokens and finds the size of the vocabulary, unless it is given. A wrong --bits is
 * reported first, because it causes ids outside the vocabulary. */
static Status source_scan(Source *s)
{
    const int64_t vocab_limit = s->vocab > 0 ? s->vocab : INT32_MAX;
    const bool bare = s->kind == SOURCE_ARRAY && !s->format.name;
    int64_t largest = 0, bad = -1, bad_token = 0, n = 0;
    do {
        TRY(source_read(s, s->format.count < 0 ? INT64_MAX : s->format.count - s->count, &n));
        /* Refuses a small .gz that unpacks to a huge file. */
        TRY(packed_check_expansion(&s->in, s->format.offset + (s->count + n) * s->format.bytes));
        for (int64_t i = 0; i < n; ++i) {
            int64_t v = token_value(&s->format, s->buffer + i * s->format.bytes);
            if (v > largest) largest = v;
            if (bad >= 0 || (v >= 0 && v < vocab_limit)) continue;
            bad = s->count + i;
            bad_token = v;
        }
        if (bare) token_evidence_add(&s->evidence, &s->format, s->buffer, n);
        s->count += n;
    } while (n > 0);
    TRY(source_end(s));
    if (bare) TRY(token_evidence_check(&s->evidence, &s->format, s->in.path, s->vocab > 0));
    if (bad >= 0) return token_outside(s, bad, bad_token);
    if (s->vocab == 0) s->vocab = largest + 1;
    return OK;
}

static herr_t put_contents(void *user, hid_t file)
{
    Split *p = user;
    const Source *s = p->source;
    int version = 1;
    hsize_t dim = (hsize_t)p->count;
    hid_t type = p->bytes == 1 ? H5T_STD_U8LE : p->bytes == 2 ? H5T_STD_U16LE : H5T_STD_U32LE;
    bool good = h5_put_text(file, "format", "weft-data") >= 0 &&
                h5_put_text(file, "kind", "tokens") >= 0 &&
                h5_put_numbers(file, "version", H5T_STD_I32LE, H5T_NATIVE_INT, &version, 0) >= 0 &&
                h5_put_numbers(file, "vocab", H5T_STD_I64LE, H5T_NATIVE_INT64, &s->vocab, 0) >= 0 &&
                h5_put_array(file, "/tokens", type, 1, &dim, &p->offset) >= 0;
    if (good && s->tokenizer)
        good = h5_put_text(file, "tokenizer", s->tokenizer) >= 0 &&
               h5_put_text(file, "tokenizer_hash", s->tokenizer_hash) >= 0;
    return good ? 0 : -1;
}

/* Converts the tokens in the buffer, in place, to little-endian ids of the split's width, which is
 * at most the file's. */
static void convert_tokens(const Source *s, const Split *p, int64_t count)
{
    if (!s->format.big_endian && s->format.bytes == p->bytes) return;
    uint8_t *to = s->buffer;
    for (int64_t i = 0; i < count; ++i) {
        int64_t v = token_value(&s->format, s->buffer + i * s->format.bytes);
        for (int b = 0; b < p->bytes; ++b) *to++ = (uint8_t)(v >> 8 * b);
    }
}

static Status split_copy(Source *s, const Split *p)
{
    for (int64_t at = 0, n; at < p->count; at += n) {
        TRY(source_read(s, p->count - at, &n));
        if (n == 0) return fail(ERR_IO, "%s: became shorter while it was read", s->in.path);
        convert_tokens(s, p, n);
        TRY(part_write(&p->file, s->buffer, n * p->bytes, p->offset + at * p->bytes));
    }
    return OK;
}

/* Sets the sizes of the splits. If there are two, the first one gets 1 - test_share of the tokens,
 * rounded down. ERR_DATA: a split has too few tokens. */
static Status splits_size(const Source *s, Split *split, int count, const TokenOutput *out)
{
    split[0].count = count > 1 ? (int64_t)((double)s->count * (1.0 - out->test_share)) : s->count;
    split[1].count = s->count - split[0].count;
    for (int i = 0; i < count; ++i) {
        split[i].bytes = s->format.bytes < 4 ? s->format.bytes : 4;
        split[i].source = s;
        if (split[i].count < SPLIT_TOKENS_MIN)
            return fail(ERR_DATA,
                        "%s: has %lld token%s; %s would get %lld, and at least %d are needed (an "
                        "input and the next token)",
                        s->name, (long long)s->count, s->count == 1 ? "" : "s", out->path[i],
                        (long long)split[i].count, SPLIT_TOKENS_MIN);
    }
    return OK;
}

/* Writes all splits, after reserving disk space for all of them. */
static Status splits_write(Source *s, Split *split, int count, const TokenOutput *out)
{
    Status st = OK;
    int made = 0;
    for (; made < count; ++made) {
        st = part_new(&split[made].file, out->path[made], out->force,
                      split[made].count * split[made].bytes, put_contents, &split[made]);
        if (st != OK) break;
    }
    for (int i = 0; st == OK && i < count; ++i) st = split_copy(s, &split[i]);
    for (int i = 0; i < made; ++i) {
        if (st == OK)
            st = part_finish(&split[i].file);
        else
            part_drop(&split[i].file);
    }
    return st;
}

/* Checks, before anything is read, that the outputs can be written and do not overwrite the
 * tokenizer's files. tokenizer: its path; NULL: none. */
static Status check_output(const TokenOutput *out, const char *tokenizer)
{
    static const char *const name[] = {"vocab.json", "merges.txt"};
    TRY(part_check_outputs(out->path[0], out->path[1], out->force));
    for (int i = 0; tokenizer && i < SPLITS; ++i)
        TRY(part_check_not_input(out->path[i], tokenizer, name, 2));
    if (out->path[1] && !(out->test_share > 0 && out->test_share < 1))
        return fail(ERR_USAGE, "a test share of %g: it must lie between 0 and 1", out->test_share);
    return OK;
}

static Status read_and_write(Source *s, const TokenOutput *out)
{
    Split split[SPLITS] = {0};
    const int count = out->path[1] ? 2 : 1;
    TRY(source_open(s));
    TRY(source_scan(s));
    TRY(splits_size(s, split, count, out));
    TRY(source_rewind(s));
    return splits_write(s, split, count, out);
}

static Status import(Source *s, const TokenOutput *out)
{
    TRY(check_output(out, s->tokenizer));
    Status st = read_and_write(s, out);
    source_close(s);
    return st;
}

Status import_text_bytes(const char *file, const TokenOutput *out)
{
    Source s = {.kind = SOURCE_BYTES, .in.path = file, .name = file, .bits = 8, .vocab = 256};
    s.tokenizer = s.tokenizer_hash = TOKENIZER_OF_BYTES;
    return import(&s, out);
}

/* Encodes the file to OUT.tokens.part and imports that as an array of tokens. */
static Status encode_and_import(Tokenizer *t, const char *file, const TextTokens *options,
                                const TokenOutput *out)
{
    Encoded encoding;
    char *encoded = mem_format("%s.tokens.part", out->path[0]), size[16];
    Status st = check_output(out, options->tokenizer);
    if (st == OK) st = encode_text(t, file, options->special, encoded, &encoding);
    if (st == OK) {
        log_info("%s: %s of text are %lld tokens, %.1f MB/s", file,
                 text_bytes((double)encoding.text_bytes, size), (long long)encoding.tokens,
                 (double)encoding.text_bytes / 1e6 / (encoding.seconds + 1e-9));
        Source s = {.kind = SOURCE_ENCODED,
                    .in.path = encoded,
                    .name = file,
                    .bits = encoding.bits,
                    .vocab = tokenizer_vocab_size(t),
                    .tokenizer = options->tokenizer,
                    .tokenizer_hash = tokenizer_hash(t)};
        st = import(&s, out);
        unlink(encoded);
    }
    mem_free(&encoded);
    return st;
}

static Status check_tokenizer_path_length(const char *tokenizer)
{
    if (strlen(tokenizer) < DATA_TOKENIZER) return OK;
    return fail(ERR_USAGE, "--tokenizer %.60s...: longer than %d characters", tokenizer,
                DATA_TOKENIZER - 1);
}

Status import_text_encoded(const char *file, const TextTokens *options, const TokenOutput *out)
{
    Tokenizer *t = NULL;
    TRY(check_tokenizer_path_length(options->tokenizer));
    TRY(tokenizer_open(&t, options->tokenizer));
    Status st = OK;
    if (options->special && tokenizer_end_of_text(t) < 0)
        st = fail(ERR_USAGE, "%s: has no <|endoftext|>, which --special needs", options->tokenizer);
    if (st == OK) st = encode_and_import(t, file, options, out);
    tokenizer_free(&t);
    return st;
}

Status import_token_array(const char *file, const TokenArray *array, const TokenOutput *out)
{
    char identity[TOKENIZER_IDENTITY];
    int64_t tokenizer_vocab_size = 0;
    const int bits = array->bits;
    Source s = {
        .kind = SOURCE_ARRAY, .in.path = file, .name = file, .bits = bits, .vocab = array->vocab};
    if (bits != 0 && bits != 16 && bits != 32 && bits != 64)
        return fail(ERR_USAGE, "tokens of %d bits: 16, 32 and 64 can be read", bits);
    if (array->vocab < 0 || array->vocab > INT32_MAX)
        return fail(ERR_USAGE, "a vocabulary of %lld: at most %d can be used",
                    (long long)array->vocab, INT32_MAX);
    if (array->tokenizer) {
        TRY(check_tokenizer_path_length(array->tokenizer));
        TRY(tokenizer_identify(array->tokenizer, identity, &tokenizer_vocab_size));
        s.tokenizer = array->tokenizer;
        s.tokenizer_hash = identity;
        if (array->vocab == 0) s.vocab = tokenizer_vocab_size;
    }
    return import(&s, out);
}

/* ---- the functions of data/import.h ---- */

Status data_import_text(const char *file, const char *out, const char *test_out, double test_share,
                        bool force)
{
    return import_text_bytes(file, &(TokenOutput){{out, test_out}, test_share, force});
}

Status data_import_encoded(const char *file, const TextTokens *options, const char *out,
                           const char *test_out, double test_share, bool force)
{
    return import_text_encoded(file, options, &(TokenOutput){{out, test_out}, test_share, force});
}

Status data_import_tokens(const char *file, int bits, int64_t vocab, const char *out,
                          const char *test_out, double test_share, bool force)
{
    return import_token_array(file, &(TokenArray){.bits = bits, .vocab = vocab},
                              &(TokenOutput){{out, test_out}, test_share, force});
}
