/* Imports tokens: a text's bytes, or an array of numbers written by another tokenizer, with a known
 * header (token_file.h) or without one, plain or .gz. The file may be larger than memory: it is
 * read twice in pieces, once to count tokens and find the largest, once to copy. The end may go to
 * a second file, for evaluation. Refuses files of other kinds, numbers that contradict the given
 * format, tokens outside the vocabulary, sizes that are not whole tokens or not the header's, and
 * parts too short for one token and the next. A text that needs a tokenizer is first encoded to
 * such an array, OUT.tokens.part. */
#include "../data_private.h"
#include "encode_text.h"
#include "token_file.h"

#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 20, PART_LEAST = 2, PARTS = 2 };

/* the file to import */
typedef struct Source {
    PackedFile in;
    /* borrowed: path that the user gave */
    const char *name;
    /* bits of a token that the user gave; 0: not given */
    int bits;
    TokenFormat format;
    /* owned: PIECE_BYTES */
    uint8_t *buffer;
    /* the file is a text, or was encoded from one, so its values are not checked as evidence */
    bool text;
    TokenEvidence evidence;
    /* number of tokens; size of the vocabulary */
    int64_t count;
    int64_t vocab;
    /* the file was encoded from a text by this process */
    bool encoded;
    /* borrowed: path and identity of the tokenizer; NULL: unknown */
    const char *tokenizer, *tokenizer_hash;
} Source;

/* one file to write */
typedef struct TokenPart {
    PartFile part;
    /* number of tokens; offset of their bytes; bytes of a token: 1, 2, 4 */
    int64_t count, offset;
    int bytes;
    int64_t vocab;
    /* borrowed; or NULL */
    const char *tokenizer, *tokenizer_hash;
} TokenPart;

/* Goes to the first token, behind the header. */
static Status source_begin(Source *s)
{
    size_t n;
    TRY(packed_rewind(&s->in));
    return packed_read(&s->in, s->buffer, (size_t)s->format.offset, &n);
}

static Status source_open(Source *s)
{
    size_t n;
    TRY(s->encoded ? packed_open_plain(&s->in, s->in.path) : packed_open(&s->in, s->in.path));
    s->buffer = mem_new(PIECE_BYTES);
    TRY(packed_read(&s->in, s->buffer, TOKEN_HEAD_MOST, &n));
    if (!s->encoded)
        TRY(token_file_foreign(s->in.path, s->buffer, n, s->in.packed ? INT64_MAX : s->in.bytes));
    if (s->text)
        s->format = (TokenFormat){.bytes = s->bits / 8, .count = -1};
    else
        TRY(token_format_read(&s->format, s->in.path, s->buffer, n, s->bits));
    return source_begin(s);
}

static void source_close(Source *s)
{
    packed_close(&s->in);
    mem_free(&s->buffer);
    token_evidence_fini(&s->evidence);
}

/* Reads up to `most` tokens into buffer; *count 0: the end. */
static Status source_read(Source *s, int64_t most, int64_t *count)
{
    const int bytes = s->format.bytes;
    int64_t wanted = PIECE_BYTES / bytes < most ? PIECE_BYTES / bytes : most;
    size_t n;
    TRY(packed_read(&s->in, s->buffer, (size_t)(wanted * bytes), &n));
    if (n % (size_t)bytes != 0)
        return fail(ERR_DATA,
                    "%s: does not hold a whole number of tokens of %d bits: it is truncated, or %s",
                    s->in.path, 8 * bytes, s->format.name ? "damaged" : "--bits is wrong");
    *count = (int64_t)n / bytes;
    return OK;
}

static Status token_outside(const Source *s, int64_t position, int64_t token)
{
    const char *least = token == INT64_MAX ? "at least " : "";
    if (token < 0 || s->vocab == 0)
        return fail(ERR_DATA, "%s: token %lld is %s%lld, and tokens are 0 to %d: %s", s->in.path,
                    (long long)position, least, (long long)token, INT32_MAX - 1,
                    s->format.name ? "the array holds something else, or is damaged"
                                   : "correct --bits, or the file");
    return fail(ERR_DATA,
                "%s: token %lld is %s%lld, but there are %lld in the vocabulary (0 to %lld); "
                "correct %s--vocab%s",
                s->in.path, (long long)position, least, (long long)token, (long long)s->vocab,
                (long long)s->vocab - 1, s->tokenizer ? "--tokenizer or " : "",
                s->format.name ? "" : " or --bits");
}

/* Checks that there are as many tokens as the header promises, and nothing behind them. */
static Status source_end(Source *s)
{
    size_t n;
    if (s->format.count < 0) return OK;
    if (s->count < s->format.count)
        return fail(ERR_DATA,
                    "%s: is truncated: its header (%s) promises %lld tokens, and there are %lld; "
                    "fetch it again",
                    s->in.path, s->format.name, (long long)s->format.count, (long long)s->count);
    TRY(packed_read(&s->in, s->buffer, 1, &n));
    if (n == 0) return OK;
    return fail(ERR_DATA,
                "%s: is longer than its header (%s) says, which promises %lld tokens; fetch it "
                "again",
                s->in.path, s->format.name, (long long)s->format.count);
}

/* Counts the tokens and, unless it is given, finds the size of the vocabulary. Evidence against the
 * format is reported before single tokens outside the vocabulary, since it names the cause. */
static Status source_survey(Source *s)
{
    const int64_t below = s->vocab > 0 ? s->vocab : INT32_MAX;
    int64_t largest = 0, bad = -1, bad_token = 0, n = 0;
    do {
        TRY(source_read(s, s->format.count < 0 ? INT64_MAX : s->format.count - s->count, &n));
        TRY(packed_bound(&s->in, s->format.offset + (s->count + n) * s->format.bytes));
        for (int64_t i = 0; i < n; ++i) {
            int64_t v = token_value(&s->format, s->buffer + i * s->format.bytes);
            if (v > largest) largest = v;
            if (bad >= 0 || (v >= 0 && v < below)) continue;
            bad = s->count + i;
            bad_token = v;
        }
        if (!s->text && !s->format.name) token_evidence_add(&s->evidence, &s->format, s->buffer, n);
        s->count += n;
    } while (n > 0);
    TRY(source_end(s));
    if (!s->text && !s->format.name)
        TRY(token_evidence_judge(&s->evidence, &s->format, s->in.path, s->vocab > 0));
    if (bad >= 0) return token_outside(s, bad, bad_token);
    if (s->vocab == 0) s->vocab = largest + 1;
    return OK;
}

static herr_t put_contents(void *user, hid_t file)
{
    TokenPart *p = user;
    int version = 1;
    hsize_t dim = (hsize_t)p->count;
    hid_t type = p->bytes == 1 ? H5T_STD_U8LE : p->bytes == 2 ? H5T_STD_U16LE : H5T_STD_U32LE;
    bool good = h5_put_text(file, "format", "weft-data") >= 0 &&
                h5_put_text(file, "kind", "tokens") >= 0 &&
                h5_put_numbers(file, "version", H5T_STD_I32LE, H5T_NATIVE_INT, &version, 0) >= 0 &&
                h5_put_numbers(file, "vocab", H5T_STD_I64LE, H5T_NATIVE_INT64, &p->vocab, 0) >= 0 &&
                h5_put_array(file, "/tokens", type, 1, &dim, &p->offset) >= 0;
    if (good && p->tokenizer)
        good = h5_put_text(file, "tokenizer", p->tokenizer) >= 0 &&
               h5_put_text(file, "tokenizer_hash", p->tokenizer_hash) >= 0;
    return good ? 0 : -1;
}

/* Converts tokens of any width and byte order to little-endian ones of p's width, which is no
 * larger. */
static void tokens_convert(const Source *s, const TokenPart *p, int64_t count)
{
    if (!s->format.big_endian && s->format.bytes == p->bytes) return;
    uint8_t *to = s->buffer;
    for (int64_t i = 0; i < count; ++i) {
        int64_t v = token_value(&s->format, s->buffer + i * s->format.bytes);
        for (int b = 0; b < p->bytes; ++b) *to++ = (uint8_t)(v >> 8 * b);
    }
}

static Status part_copy(Source *s, const TokenPart *p)
{
    for (int64_t at = 0, n; at < p->count; at += n) {
        TRY(source_read(s, p->count - at, &n));
        if (n == 0) return fail(ERR_IO, "%s: became shorter while it was read", s->in.path);
        tokens_convert(s, p, n);
        TRY(part_write(&p->part, s->buffer, n * p->bytes, p->offset + at * p->bytes));
    }
    return OK;
}

/* Lays out both parts before filling either, so that a full disk shows at once. */
static Status parts_write(Source *s, TokenPart *part, int parts, const char *const *out, bool force)
{
    Status st = OK;
    int made = 0;
    for (; st == OK && made < parts; made += st == OK)
        st = part_new(&part[made].part, out[made], force, part[made].count * part[made].bytes,
                      put_contents, &part[made]);
    for (int i = 0; st == OK && i < parts; ++i) st = part_copy(s, &part[i]);
    for (int i = 0; i < made; ++i) {
        if (st == OK)
            st = part_finish(&part[i].part);
        else
            part_drop(&part[i].part);
    }
    return st;
}

/* Cuts the tokens: the first part is the share 1 - test_share, rounded down, as other programs
 * do. */
static Status parts_cut(const Source *s, TokenPart *part, int parts, double test_share)
{
    part[0].count = parts > 1 ? (int64_t)((double)s->count * (1.0 - test_share)) : s->count;
    part[1].count = s->count - part[0].count;
    for (int i = 0; i < parts; ++i) {
        part[i].bytes = s->format.bytes < 4 ? s->format.bytes : 4;
        part[i].vocab = s->vocab;
        part[i].tokenizer = s->tokenizer;
        part[i].tokenizer_hash = s->tokenizer_hash;
        if (part[i].count < PART_LEAST)
            return fail(ERR_DATA,
                        "%s: tokens in it: %lld, for %s: %lld; at least %d are needed, one and the "
                        "one after it",
                        s->name, (long long)s->count, i ? "the test file" : "training",
                        (long long)part[i].count, PART_LEAST);
    }
    return OK;
}

/* Checks the output before anything is read. */
/* tokenizer: path; NULL: none */
static Status check_out(const char *const *out, const char *tokenizer, double test_share,
                        bool force)
{
    static const char *const name[] = {"vocab.json", "merges.txt"};
    TRY(part_free_places(out[0], out[1], force));
    for (int i = 0; tokenizer && i < PARTS; ++i) TRY(part_no_input(out[i], tokenizer, name, 2));
    if (out[1] && !(test_share > 0 && test_share < 1))
        return fail(ERR_USAGE, "a test share of %g: it must lie between 0 and 1", test_share);
    return OK;
}

static Status import(Source *s, const char *const *out, double test_share, bool force)
{
    TokenPart part[PARTS] = {0};
    int parts = out[1] ? 2 : 1;
    TRY(check_out(out, s->tokenizer, test_share, force));
    TRY(source_open(s));
    TRY(source_survey(s));
    TRY(parts_cut(s, part, parts, test_share));
    TRY(source_begin(s));
    return parts_write(s, part, parts, out, force);
}

Status data_import_text(const char *file, const char *out, const char *test_out, double test_share,
                        bool force)
{
    Source s = {.in.path = file, .name = file, .bits = 8, .text = true, .vocab = 256};
    s.tokenizer = s.tokenizer_hash = TOKENIZER_OF_BYTES;
    Status st = import(&s, (const char *const[]){out, test_out}, test_share, force);
    source_close(&s);
    return st;
}

/* Encodes the file to OUT.tokens.part and imports that as an array of tokens. */
static Status encode_and_import(Tokenizer *t, const char *file, const TextTokens *how,
                                const char *const *out, double test_share, bool force)
{
    Encoded made;
    char *encoded = mem_format("%s.tokens.part", out[0]), size[16];
    Status st = check_out(out, how->tokenizer, test_share, force);
    if (st == OK) st = encode_text(t, file, how->special, encoded, &made);
    if (st == OK) {
        log_info("%s: %s of text are %lld tokens, %.1f MB/s", file,
                 text_bytes((double)made.text_bytes, size), (long long)made.tokens,
                 (double)made.text_bytes / 1e6 / (made.seconds + 1e-9));
        Source s = {.in.path = encoded,
                    .name = file,
                    .bits = made.bits,
                    .text = true,
                    .encoded = true,
                    .vocab = tokenizer_vocab(t)};
        s.tokenizer = how->tokenizer;
        s.tokenizer_hash = tokenizer_hash(t);
        st = import(&s, out, test_share, force);
        source_close(&s);
        unlink(encoded);
    }
    mem_free(&encoded);
    return st;
}

static Status check_name(const char *tokenizer)
{
    if (strlen(tokenizer) < DATA_TOKENIZER) return OK;
    return fail(ERR_USAGE, "--tokenizer %.60s...: longer than %d characters", tokenizer,
                DATA_TOKENIZER - 1);
}

Status data_import_encoded(const char *file, const TextTokens *how, const char *out,
                           const char *test_out, double test_share, bool force)
{
    Tokenizer *t = NULL;
    TRY(check_name(how->tokenizer));
    TRY(tokenizer_open(&t, how->tokenizer));
    Status st = OK;
    if (how->special && tokenizer_end_of_text(t) < 0)
        st = fail(ERR_USAGE, "%s: has no <|endoftext|>, which --special asks for", how->tokenizer);
    if (st == OK)
        st = encode_and_import(t, file, how, (const char *const[]){out, test_out}, test_share,
                               force);
    tokenizer_free(&t);
    return st;
}

/* Imports an array of tokens. tokenizer: the path of what made them, which gives the set its
 * identity and, where vocab is 0 and weft can read it, its vocabulary; NULL: unknown. */
static Status import_array(const char *file, const char *tokenizer, int bits, int64_t vocab,
                           const char *out, const char *test_out, double test_share, bool force)
{
    char identity[TOKENIZER_IDENTITY];
    int64_t tokens = 0;
    Source s = {.in.path = file, .name = file, .bits = bits, .vocab = vocab};
    if (bits != 0 && bits != 16 && bits != 32 && bits != 64)
        return fail(ERR_USAGE, "tokens of %d bits: 16, 32 and 64 can be read", bits);
    if (vocab < 0 || vocab > INT32_MAX)
        return fail(ERR_USAGE, "a vocabulary of %lld: at most %d can be used", (long long)vocab,
                    INT32_MAX);
    if (tokenizer) {
        TRY(check_name(tokenizer));
        TRY(tokenizer_identify(tokenizer, identity, &tokens));
        s.tokenizer = tokenizer;
        s.tokenizer_hash = identity;
        if (vocab == 0) s.vocab = tokens;
    }
    Status st = import(&s, (const char *const[]){out, test_out}, test_share, force);
    source_close(&s);
    return st;
}

Status data_import_tokens(const char *file, int bits, int64_t vocab, const char *out,
                          const char *test_out, double test_share, bool force)
{
    return import_array(file, NULL, bits, vocab, out, test_out, test_share, force);
}

/* ---- the verbs ---- */

typedef struct TokenOptions {
    const char *out, *test;
    double test_share;
    bool force;
    /* `data import tokens` only: index of auto, 16, 32, 64 */
    int bits;
    /* `data import tokens` only */
    int64_t vocab;
    const char *tokenizer;
    /* `data import text` only */
    bool special;
} TokenOptions;

/* clang-format off */
#define TEST_FLAGS                                                                                 \
    {"--test", FLAG_FIELD(TokenOptions, test), .value = "OUT", .writes = true,                     \
     .help = "a second data set, with the end of FILE"},                                           \
    {"--test-share", FLAG_FIELD(TokenOptions, test_share), .value = "S", .hi = 1,                  \
     .fallback = "0.1", .needs = "--test", .help = "fraction of FILE that it holds"},              \
    FLAG_FORCE(TokenOptions, force)
/* clang-format on */

static const Flag text_flags[] = {
    FLAG_OUT(TokenOptions, out, "the data set to write"),
    {"--tokenizer", FLAG_FIELD(TokenOptions, tokenizer), .value = "PATH",
     .help =
         "GPT-2's tokenizer: a folder with vocab.json and merges.txt, or a tiktoken file; bytes "
         "(default): each byte is a token"},
    {"--special", FLAG_FIELD(TokenOptions, special), .needs = "--tokenizer",
     .help = "read <|endoftext|> in FILE as one token, not as ordinary text"},
    TEST_FLAGS,
};
static const Flag token_flags[] = {
    FLAG_OUT(TokenOptions, out, "the data set to write"),
    {"--bits", FLAG_FIELD(TokenOptions, bits), .value = "auto|16|32|64", .fallback = "auto",
     .help = "bits of a token in FILE; auto: as its header says"},
    {"--vocab", FLAG_FIELD(TokenOptions, vocab), .value = "V", .lo = 1, .hi = INT32_MAX,
     .help = "size of the vocabulary; by default the tokenizer's, or 1 + the largest token"},
    {"--tokenizer", FLAG_FIELD(TokenOptions, tokenizer), .value = "PATH",
     .help = "tokenizer that wrote FILE: GPT-2's files, any other file, or bytes; data sets are "
             "compared by it"},
    TEST_FLAGS,
};

static Status wrote(Status status, const TokenOptions *o)
{
    if (status != OK) return status;
    log_info("wrote %s", o->out);
    if (o->test) log_info("wrote %s", o->test);
    return OK;
}

static Status run_text(int argc, char **argv, const void *options)
{
    const TokenOptions *o = options;
    (void)argc;
    const TextTokens how = {.tokenizer = o->tokenizer, .special = o->special};
    const bool bytes = o->tokenizer && strcmp(o->tokenizer, TOKENIZER_OF_BYTES) == 0;
    if (bytes && o->special)
        return fail(ERR_USAGE, "--tokenizer bytes: has no <|endoftext|>, which --special asks for");
    if (o->tokenizer && !bytes)
        return wrote(data_import_encoded(argv[0], &how, o->out, o->test, o->test_share, o->force),
                     o);
    return wrote(data_import_text(argv[0], o->out, o->test, o->test_share, o->force), o);
}

static Status run_tokens(int argc, char **argv, const void *options)
{
    const TokenOptions *o = options;
    (void)argc;
    return wrote(import_array(argv[0], o->tokenizer, o->bits ? 8 << o->bits : 0, o->vocab, o->out,
                              o->test, o->test_share, o->force),
                 o);
}

const Verb import_text = {
    .name = "data import text",
    .words = "FILE",
    .least = 1,
    .most = 1,
    .expects = "one file, and -o OUT",
    .help = "imports a text (.gz too) as bytes, or through a tokenizer: tokens",
    VERB_FLAGS(TokenOptions, text_flags),
    .traits = VERB_PLAIN,
    .run = run_text,
};

const Verb import_tokens = {
    .name = "data import tokens",
    .words = "FILE",
    .least = 1,
    .most = 1,
    .expects = "one file, and -o OUT",
    .help = "imports an array of token numbers that a tokenizer has written (.gz too)",
    .more = "The headers of NumPy's .npy files and llm.c's shards give the width of a token. For "
            "files of little-endian numbers without a header --bits gives it.",
    VERB_FLAGS(TokenOptions, token_flags),
    .traits = VERB_PLAIN,
    .run = run_tokens,
};
