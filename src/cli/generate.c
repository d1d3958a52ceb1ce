/* weft generate: continues a text with a token model. Prompt and output are text in two cases.
 * First, --tokenizer is given, which must be the tokenizer of the training data. Second, the
 * model's tokens are bytes: there are 256, and they are not known to be from a tokenizer. Otherwise
 * prompt and output are token ids. Runs in one process, whatever the grid of the training was. */
#include "private.h"

#include "checkpoint.h"
#include "train.h"

#include <string.h>
#include <unistd.h>

/* number of tokens of a model whose tokens are bytes */
enum { BYTE_VALUES = 256 };

typedef struct Request {
    const char *checkpoint, *prompt, *tokenizer;
    int64_t tokens, top_k, seed;
    double temperature;
    bool no_ema;
} Request;

static const Flag flags[] = {
    {"--prompt", FLAG_FIELD(Request, prompt), .value = "TEXT",
     .help = "the text to continue; token ids (5,9) if tokens are not bytes"},
    {"--tokenizer", FLAG_FIELD(Request, tokenizer), .value = "PATH",
     .help = "tokenizer of prompt and continuation: a folder with vocab.json and merges.txt, or "
             "a tiktoken file; bytes: each byte is a token"},
    {"--tokens", FLAG_FIELD(Request, tokens), .value = "N", .lo = 1, .hi = FLAG_WHOLE_MAX,
     .default_text = "256", .help = "number of new tokens"},
    {"--temperature", FLAG_FIELD(Request, temperature), .value = "T", .hi = 100,
     .default_text = "0.8",
     .help = "0 always chooses the likeliest token; values above 1 give more random text"},
    {"--top-k", FLAG_FIELD(Request, top_k), .value = "K", .lo = 1, .hi = INT32_MAX,
     .help = "choose among the K likeliest tokens only"},
    {"--seed", FLAG_FIELD(Request, seed), .value = "S", .hi = FLAG_WHOLE_MAX, .default_text = "1",
     .help = "seed of the random choices"},
    FLAG_CHECKPOINT(Request),
    FLAG_NO_EMA(Request),
};

/* Prints tokens. */
typedef struct Printer {
    /* how a token is printed without a tokenizer: true: as a byte; false: as its id */
    bool byte_tokens;
    /* true: the output is flushed after each token */
    bool flush;
    /* tokenizer of --tokenizer, borrowed; NULL: none, or tokens are bytes */
    const Tokenizer *tokenizer;
    /* the byte that was printed last */
    int last_byte;
} Printer;

static void print_token(void *user, int32_t token)
{
    Printer *p = user;
    size_t bytes = 0;
    const char *text = p->tokenizer ? tokenizer_bytes(p->tokenizer, token, &bytes) : "";
    p->last_byte = bytes ? text[bytes - 1] : p->byte_tokens ? token : ' ';
    if (p->tokenizer)
        fwrite(text, 1, bytes, stdout);
    else if (!p->byte_tokens)
        printf("%d ", token);
    else if (token < BYTE_VALUES)
        putchar(token);
    if (p->flush) fflush(stdout);
}

/* Reads the tokens of the prompt, [*count], which the caller owns. byte_tokens: true: each byte of
 * the prompt is a token; without a prompt there is one token, a line end. false: the prompt is a
 * list of ids, separated by commas or blanks, and must have at least one id. */
static Status read_prompt(const char *prompt, bool byte_tokens, int32_t **tokens, int64_t *count)
{
    const char *at = prompt && *prompt ? prompt : byte_tokens ? "\n" : "";
    *tokens = mem_new((strlen(at) + 1) * sizeof **tokens);
    *count = 0;
    for (; byte_tokens && *at; ++at) (*tokens)[(*count)++] = (unsigned char)*at;
    for (at += strspn(at, ", "); *at; at += strspn(at, ", ")) {
        int64_t token;
        if (!whole_read(&at, 0, INT32_MAX, &token) || !strchr(", ", *at))
            return fail(ERR_USAGE, "--prompt %s: expected token ids, as 15496,995", prompt);
        (*tokens)[(*count)++] = (int32_t)token;
    }
    if (*count > 0) return OK;
    return fail(ERR_USAGE, "--prompt is missing: expected token ids, as 15496,995");
}

/* Encodes the prompt with the tokenizer to tokens, [*count], which the caller owns. Without a
 * prompt there is one token: the end of a text or, if the tokenizer has no such token, a line
 * end. */
static void encode_prompt(Tokenizer *t, const char *prompt, int32_t **tokens, int64_t *count)
{
    TokenList list = {0};
    const char *text = prompt && *prompt ? prompt : tokenizer_end_of_text(t) < 0 ? "\n" : "";
    tokenizer_encode(t, text, strlen(text), false, &list);
    *count = list.count ? list.count : 1;
    *tokens = list.count ? list.token : mem_new(sizeof **tokens);
    if (!list.count) **tokens = tokenizer_end_of_text(t);
}

/* Returns a description of a tokenizer, which the caller owns. identity: its identity
 * (data/tokenizer.h). set: a data set whose tokens the tokenizer has made; NULL: only the identity
 * is known. */
static char *describe_tokenizer(const DataSet *set, const char *identity)
{
    if (!*identity) return mem_text("an unknown tokenizer");
    if (strcmp(identity, TOKENIZER_OF_BYTES) == 0) return mem_text("bytes as tokens");
    return set ? mem_format("%s, which had %s", set->tokenizer, identity)
               : mem_format("the tokenizer with hash %s", identity);
}

/* Logs that --tokenizer cannot be compared with the tokenizer of a data set or of a checkpoint.
 * tokenizer: value of --tokenizer. hash: hash of that tokenizer. path: path of the data set or the
 * checkpoint. identity: identity of its tokenizer. */
static void log_unknown_tokenizer(const char *tokenizer, const char *hash, const char *path,
                                  const char *identity)
{
    char *name = mem_format("--tokenizer %s", tokenizer);
    char *a = tokenizer_describe(NULL, hash), *b = tokenizer_describe(NULL, identity);
    char *line = tokenizer_unknown_message(name, a, path, b);
    log_info("%s", line);
    mem_free(&line);
    mem_free(&name);
    mem_free(&a);
    mem_free(&b);
}

/* Compares the tokenizer of --tokenizer with that of the checkpoint's training or, if the
 * checkpoint does not name one, with that of the data set. Refuses a different tokenizer, because
 * its ids have other meanings. If the two tokenizers cannot be compared, it refuses a tokenizer
 * that has more tokens than the model, and accepts any other with a line in the log. path: path of
 * the checkpoint. t: the tokenizer; NULL if each byte is a token. */
static Status check_tokenizer(const Trainer *trainer, const Request *r, const char *path,
                              const Tokenizer *t)
{
    const int64_t tokens = t ? tokenizer_vocab_size(t) : BYTE_VALUES;
    const int64_t model_tokens = trainer_graph(trainer)->classes;
    const DataSet *set = trainer_train_set(trainer);
    CheckpointMeta meta = {0};
    TRY(checkpoint_read_meta(path, &meta));
    const char *hash = t ? tokenizer_hash(t) : TOKENIZER_OF_BYTES, *expected = meta.tokenizer_hash;
    /* true: the data set names the expected tokenizer; false: only the checkpoint does */
    const bool is_of_set = !*expected || strcmp(expected, set->tokenizer_hash) == 0;
    if (is_of_set) expected = set->tokenizer_hash;
    const char *source = is_of_set ? set->path : path;
    const bool expects_bytes = strcmp(expected, TOKENIZER_OF_BYTES) == 0;
    char *description = describe_tokenizer(is_of_set ? set : NULL, expected);
    TokenizerMatch match = tokenizer_match(hash, expected);
    Status st = OK;
    if (match == TOKENIZERS_DIFFER)
        st = fail(ERR_USAGE, "--tokenizer %s has hash %s, but %s was made with %s: %s",
                  r->tokenizer, hash, source, description,
                  expects_bytes ? "leave --tokenizer out" : "give that one");
    else if (match == TOKENIZERS_UNKNOWN && tokens > model_tokens)
        st = fail(ERR_DATA,
                  "--tokenizer %s has %lld tokens, but the model of %s has %lld: it is not the "
                  "tokenizer of its training; give that one",
                  r->tokenizer, (long long)tokens, path, (long long)model_tokens);
    else if (match == TOKENIZERS_UNKNOWN)
        log_unknown_tokenizer(r->tokenizer, hash, source, expected);
    mem_free(&description);
    checkpoint_meta_fini(&meta);
    return st;
}

/* Checks that the model has the tokens of the prompt, and as many tokens as --top-k says. */
static Status check_request(const Trainer *t, const Sampling *s)
{
    int64_t vocab = trainer_graph(t)->classes;
    if (s->top_k > vocab)
        return fail(ERR_USAGE, "--top-k %lld: the model has %lld tokens", (long long)s->top_k,
                    (long long)vocab);
    for (int64_t i = 0; i < s->prompt_count; ++i)
        if (s->prompt[i] >= vocab)
            return fail(ERR_USAGE, "--prompt has token %d, but the model's are 0 to %lld",
                        s->prompt[i], (long long)vocab - 1);
    return OK;
}

static Status generate(Trainer *trainer, const char *path, const Request *r)
{
    Sampling s = {.tokens = r->tokens,
                  .temperature = r->temperature,
                  .top_k = r->top_k,
                  .seed = (uint64_t)r->seed};
    if (!data_has_tokens(trainer_train_set(trainer)))
        return config_fail_key(trainer_config(trainer), "data.train",
                               "%s holds no tokens, and generate continues texts",
                               trainer_train_set(trainer)->path);
    const char *set_hash = trainer_train_set(trainer)->tokenizer_hash;
    const bool bytes_wanted = r->tokenizer && strcmp(r->tokenizer, TOKENIZER_OF_BYTES) == 0;
    bool byte_tokens =
        bytes_wanted || (trainer_graph(trainer)->classes == BYTE_VALUES &&
                         tokenizer_match(set_hash, TOKENIZER_OF_BYTES) != TOKENIZERS_DIFFER);
    Printer printer = {
        .byte_tokens = byte_tokens, .flush = isatty(STDOUT_FILENO), .last_byte = '\n'};
    int32_t *prompt = NULL;
    Tokenizer *tokenizer = NULL;
    Status status = r->tokenizer && !bytes_wanted ? tokenizer_open(&tokenizer, r->tokenizer) : OK;
    printer.tokenizer = tokenizer;
    if (status == OK && r->tokenizer) status = check_tokenizer(trainer, r, path, tokenizer);
    if (status == OK && tokenizer)
        encode_prompt(tokenizer, r->prompt, &prompt, &s.prompt_count);
    else if (status == OK)
        status = read_prompt(r->prompt, byte_tokens, &prompt, &s.prompt_count);
    s.prompt = prompt;
    s.take = print_token;
    s.user = &printer;
    if (status == OK) status = check_request(trainer, &s);
    if (status == OK) status = train_load(trainer, path, r->no_ema ? LOAD_PARAMS : LOAD_AVERAGES);
    for (int64_t i = 0; status == OK && r->prompt && *r->prompt && i < s.prompt_count; ++i)
        print_token(&printer, prompt[i]);
    if (status == OK) status = train_generate(trainer, &s);
    if (status == OK && printer.last_byte != '\n') putchar('\n');
    tokenizer_free(&tokenizer);
    mem_free(&prompt);
    return status;
}

static Status run_job(const Job *job, const Request *r)
{
    Trainer *trainer = NULL;
    char *path = NULL;
    if (job->world.size > 1)
        return fail(ERR_USAGE, "weft generate runs as one process: start it without mpirun or "
                               "srun");
    TRY(job_find_checkpoint(job, r->checkpoint, &path));
    /* the widths of a pruned model are those of the checkpoint */
    train_use_widths(job->config, &job->world, path);
    job_use_one_rank(job->config, 1);
    mem_free(&job->config->data.test);
    Status status = trainer_new_to_load(&trainer, job->config, &job->world, NULL, path);
    if (status == OK) status = generate(trainer, path, r);
    trainer_free(&trainer);
    mem_free(&path);
    return status;
}

static Status run(int argc, char **argv, const void *options)
{
    Job job;
    Status status = job_open(&job, argc, argv);
    if (status == OK) status = run_job(&job, options);
    return job_close(&job, status);
}

const Verb verb_generate = {
    .name = "generate",
    .words = "CONFIG [key=value ...]",
    .help = "continues a text with a token model; one process, for a model trained on any grid",
    VERB_FLAGS(Request, flags),
    .traits = VERB_CONFIG | VERB_THREADS | VERB_DATA,
    .run = run,
};
