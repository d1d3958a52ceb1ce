/* Translates descriptions of transformers 5 (llama, mistral, qwen2, gpt2), as its configuration and
 * modeling files interpret them. An absent field has the default of its class in transformers. */
#include "hf_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* bits of model types; LLAMAS: all types of family llama */
enum { LLAMA = 1, MISTRAL = 2, QWEN2 = 4, LLAMAS = 7, GPT2 = 8, ALL = 15 };

/* A model type of transformers that weft has. */
typedef struct HfType {
    /* model_type of the description */
    const char *type;
    /* weft's name of the family */
    const char *family;
    /* weft's name of the model */
    const char *name;
    /* classes of transformers with these tensors, "A|B" */
    const char *architectures;
    int bit;
} HfType;

static const HfType types[] = {
    {"llama", "llama", "llama", "LlamaForCausalLM|LLaMAForCausalLM|LlamaModel", LLAMA},
    {"mistral", "llama", "llama", "MistralForCausalLM|MistralModel", MISTRAL},
    {"qwen2", "llama", "llama", "Qwen2ForCausalLM|Qwen2Model", QWEN2},
    {"gpt2", "gpt2", "gpt2", "GPT2LMHeadModel|GPT2Model", GPT2},
};
enum { TYPES = sizeof types / sizeof *types };

/* How the value of a field is used. */
typedef enum HfUse {
    /* The field is read by a separate function. */
    USE_HANDLED,
    /* The field is stored in HfModel as an int64_t. */
    USE_COUNT,
    /* The field is stored in HfModel as a double. */
    USE_REAL,
    /* The field is stored in HfModel as a bool. */
    USE_BOOL,
    /* The field must be one of HfRow.values; null and absent fields are accepted. */
    USE_ONLY
} HfUse;

/* A field of a description. */
typedef struct HfRow {
    const char *name;
    /* bits of the model types that have the field (HfType.bit) */
    int types;
    HfUse use;
    /* allowed values for USE_ONLY: "a|b|c" */
    const char *values;
    /* offset in HfModel at which the value is stored */
    size_t offset;
    /* value that stands for an absent or null field, for each model type in the order of the table
     * `types` above */
    const char *default_text[TYPES];
} HfRow;

#define ROW(t, n, u)         .name = (n), .types = (t), .use = USE_##u
#define READ(t, n, u, field) ROW(t, n, u), .offset = offsetof(HfModel, field)
#define HANDLED(t, n)                                                                              \
    {                                                                                              \
        ROW(t, n, HANDLED)                                                                         \
    }
#define ONLY(t, n, v)                                                                              \
    {                                                                                              \
        ROW(t, n, ONLY), .values = (v)                                                             \
    }

static const HfRow rows[] = {
    {READ(LLAMAS, "hidden_size", COUNT, width), .default_text = {"4096", "4096", "4096"}},
    {READ(LLAMAS, "num_hidden_layers", COUNT, layers), .default_text = {"32", "32", "32"}},
    {READ(LLAMAS, "num_attention_heads", COUNT, heads), .default_text = {"32", "32", "32"}},
    {READ(LLAMAS, "num_key_value_heads", COUNT, kv_heads), .default_text = {"0", "8", "32"}},
    {READ(LLAMAS, "head_dim", COUNT, head_width), .default_text = {"0", "0", "0"}},
    {READ(LLAMAS, "intermediate_size", COUNT, ffn), .default_text = {"11008", "14336", "22016"}},
    {READ(ALL, "vocab_size", COUNT, vocab), .default_text = {"32000", "32000", "151936", "50257"}},
    {READ(LLAMAS, "max_position_embeddings", COUNT, context),
     .default_text = {"2048", "131072", "32768"}},
    {READ(LLAMAS, "rms_norm_eps", REAL, rms_eps), .default_text = {"1e-6", "1e-6", "1e-6"}},
    {READ(ALL, "tie_word_embeddings", BOOL, tied),
     .default_text = {"false", "false", "false", "true"}},
    {READ(GPT2, "n_embd", COUNT, width), .default_text = {[3] = "768"}},
    {READ(GPT2, "n_layer", COUNT, layers), .default_text = {[3] = "12"}},
    {READ(GPT2, "n_head", COUNT, heads), .default_text = {[3] = "12"}},
    {READ(GPT2, "n_inner", COUNT, ffn), .default_text = {[3] = "0"}},
    {READ(GPT2, "n_positions", COUNT, context), .default_text = {[3] = "1024"}},
    HANDLED(ALL, "model_type"),
    HANDLED(ALL, "architectures"),
    HANDLED(LLAMAS, "rope_theta"),
    HANDLED(LLAMAS, "rope_scaling"),
    HANDLED(LLAMAS, "rope_parameters"),
    HANDLED(LLAMAS, "original_max_position_embeddings"),
    HANDLED(LLAMAS, "sliding_window"),
    HANDLED(LLAMAS, "use_sliding_window"),
    HANDLED(LLAMAS, "max_window_layers"),
    HANDLED(LLAMAS, "layer_types"),
    ONLY(LLAMAS, "hidden_act", "silu|swish"),
    ONLY(GPT2, "activation_function", "gelu_new|gelu_pytorch_tanh|gelu_fast"),
    ONLY(GPT2, "layer_norm_epsilon", "1e-5"),
    ONLY(GPT2, "scale_attn_weights", "true"),
    ONLY(GPT2, "scale_attn_by_inverse_layer_idx", "false"),
    ONLY(LLAMA | MISTRAL, "qkv_bias", "false"),
    ONLY(QWEN2, "qkv_bias", "true"),
    ONLY(ALL, "attention_bias", "false"),
    ONLY(ALL, "mlp_bias", "false"),
    ONLY(ALL, "o_bias", "false"),
    ONLY(ALL, "partial_rotary_factor", "1"),
    ONLY(ALL, "rotary_pct", "1"),
    ONLY(ALL, "attn_logit_softcapping", "null"),
    ONLY(ALL, "final_logit_softcapping", "null"),
    ONLY(ALL, "logit_softcapping", "null"),
    ONLY(ALL, "query_pre_attn_scalar", "null"),
    ONLY(ALL, "embedding_multiplier", "1"),
    ONLY(ALL, "residual_multiplier", "1"),
    ONLY(ALL, "attention_multiplier", "null"),
    ONLY(ALL, "logits_scaling", "1"),
    ONLY(ALL, "logit_scale", "1"),
    ONLY(ALL, "scale_emb", "1"),
    ONLY(ALL, "scale_depth", "null"),
    ONLY(ALL, "attention_chunk_size", "null"),
    ONLY(ALL, "no_rope_layers", "null"),
    ONLY(ALL, "no_rope_layer_interval", "null"),
    ONLY(ALL, "use_qk_norm", "false"),
    ONLY(ALL, "qk_norm", "false"),
    ONLY(ALL, "qk_layernorm", "false"),
    ONLY(ALL, "clip_qkv", "null"),
    ONLY(ALL, "use_mrope", "false"),
    ONLY(ALL, "rope_interleave", "false"),
    ONLY(ALL, "rope_interleaved", "false"),
    ONLY(ALL, "alibi", "false"),
    ONLY(ALL, "num_local_experts", "0|1"),
    ONLY(ALL, "num_experts", "0|1"),
    ONLY(ALL, "is_encoder_decoder", "false"),
    ONLY(ALL, "add_cross_attention", "false"),
    ONLY(ALL, "is_causal", "true"),
    ONLY(ALL, "pruned_heads", "null"),
    ONLY(ALL, "quantization_config", "null"),
    ONLY(ALL, "compression_config", "null"),
};

/* Names and patterns of fields that do not change the model's results: they concern training,
 * storage and sampling. */
static const char *const neutral[] = {"attention_dropout",
                                      "attn_pdrop",
                                      "resid_pdrop",
                                      "embd_pdrop",
                                      "hidden_dropout",
                                      "hidden_dropout_prob",
                                      "classifier_dropout",
                                      "initializer_range",
                                      "use_cache",
                                      "cache_implementation",
                                      "dtype",
                                      "torch_dtype",
                                      "transformers_version",
                                      "_name_or_path",
                                      "name_or_path",
                                      "_attn_implementation",
                                      "_attn_implementation_autoset",
                                      "use_bfloat16",
                                      "torchscript",
                                      "pretraining_tp",
                                      "n_ctx",
                                      "summary_*",
                                      "reorder_and_upcast_attn",
                                      "gradient_checkpointing",
                                      "is_decoder",
                                      "chunk_size_feed_forward",
                                      "output_*",
                                      "return_dict*",
                                      "remove_invalid_values",
                                      "task_specific_params",
                                      "problem_type",
                                      "finetuning_task",
                                      "id2label",
                                      "label2id",
                                      "num_labels",
                                      "tokenizer_class",
                                      "prefix",
                                      "bos_token_id",
                                      "eos_token_id",
                                      "pad_token_id",
                                      "sep_token_id",
                                      "unk_token_id",
                                      "cls_token_id",
                                      "mask_token_id",
                                      "decoder_start_token_id",
                                      "forced_*_token_id",
                                      "begin_suppress_tokens",
                                      "suppress_tokens",
                                      "bad_words_ids",
                                      "max_length",
                                      "min_length",
                                      "do_sample",
                                      "early_stopping",
                                      "num_beams",
                                      "num_beam_groups",
                                      "diversity_penalty",
                                      "temperature",
                                      "top_k",
                                      "top_p",
                                      "typical_p",
                                      "repetition_penalty",
                                      "length_penalty",
                                      "no_repeat_ngram_size",
                                      "encoder_no_repeat_ngram_size",
                                      "num_return_sequences",
                                      "exponential_decay_length_penalty",
                                      "tie_encoder_decoder",
                                      "cross_attention_hidden_size",
                                      "tf_legacy_loss",
                                      "unsloth_*",
                                      "model_max_length",
                                      "tokenizer_model_max_length",
                                      NULL};

Status hf_number(const HfFields *f, const HfField *field, double *value)
{
    *value = 0;
    TRY(hf_check_kind(f, field, HF_NUMBER));
    *value = strtod(field->value, NULL);
    return OK;
}

Status hf_count(const HfFields *f, const HfField *field, int64_t *value)
{
    double real;
    TRY(hf_number(f, field, &real));
    if (real < 0 || real > INT32_MAX || real != floor(real))
        return hf_refuse(f, field, "expected a whole number from 0 to %d", INT32_MAX);
    *value = (int64_t)real;
    return OK;
}

Status hf_bool(const HfFields *f, const HfField *field, bool *value)
{
    *value = strcmp(field->value, "true") == 0;
    return hf_check_kind(f, field, HF_BOOL);
}

/* ---- which model it is ---- */

/* Returns true if the field's value is one of `values`, "a|b|c". Numbers are compared by value. */
static bool is_one_of(const HfField *field, const char *values)
{
    const size_t length = strlen(field->value);
    for (const char *at = values; *at; at += strcspn(at, "|"), at += *at == '|') {
        const size_t chars = strcspn(at, "|");
        if (chars == length && strncmp(at, field->value, chars) == 0) return true;
        if (field->kind == HF_NUMBER && strtod(at, NULL) == strtod(field->value, NULL) &&
            strspn(at, "+-.0123456789eE") == chars)
            return true;
    }
    return false;
}

static const HfType *find_type(HfFields *f)
{
    const HfField *type = hf_value(f, "model_type"), *classes = hf_value(f, "architectures");
    for (int i = 0; i < TYPES; ++i)
        if (type ? strcmp(types[i].type, type->value) == 0
                 : classes && is_one_of(classes, types[i].architectures))
            return &types[i];
    return NULL;
}

bool hf_model_known(HfFields *f)
{
    return find_type(f) != NULL;
}

static Status read_type(HfFields *f, const Family *family, const HfType **type)
{
    static const char known[] = "weft has llama, mistral, qwen2 and gpt2";
    const HfField *given = hf_value(f, "model_type"), *classes = hf_value(f, "architectures");
    if (given) TRY(hf_check_kind(f, given, HF_TEXT));
    if (classes) TRY(hf_check_kind(f, classes, HF_LIST));
    *type = find_type(f);
    if (!given && !classes)
        return fail(ERR_DATA, "%s: has neither model_type nor architectures: %s", f->path, known);
    if (!*type) return hf_refuse(f, given ? given : classes, "%s", known);
    if (classes && !is_one_of(classes, (*type)->architectures))
        return hf_refuse(f, classes, "for model_type %s weft has %s", (*type)->type,
                         (*type)->architectures);
    if (strcmp((*type)->family, family->name) != 0)
        return hf_refuse(f, given ? given : classes, "but the tensors have the names of %s",
                         family->help);
    return OK;
}

/* ---- fields ---- */

static const HfRow *find_row(const char *name, const HfType *type)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const HfRow *row = &rows[i];
        if (row->types & type->bit && strcmp(row->name, name) == 0) return row;
    }
    return NULL;
}

static bool is_read(const HfRow *row)
{
    return row->use == USE_COUNT || row->use == USE_REAL || row->use == USE_BOOL;
}

static Status read_rows(HfModel *m, HfFields *f, const HfType *type)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const HfRow *row = &rows[i];
        if (!(row->types & type->bit) || !is_read(row)) continue;
        const HfField *given = hf_find(f, row->name);
        const bool null = given && given->kind == HF_NULL;
        /* an explicit null for kv_heads means as many key heads as query heads, even if the class's
         * default differs */
        const char *absent = null && row->offset == offsetof(HfModel, kv_heads)
                                 ? "0"
                                 : row->default_text[type - types];
        const HfField default_field = {.name = (char *)(uintptr_t)row->name,
                                       .value = (char *)(uintptr_t)absent,
                                       .kind = row->use == USE_BOOL ? HF_BOOL : HF_NUMBER};
        const HfField *field = given && !null ? given : &default_field;
        void *to = (char *)m + row->offset;
        TRY(row->use == USE_COUNT  ? hf_count(f, field, to)
            : row->use == USE_REAL ? hf_number(f, field, to)
                                   : hf_bool(f, field, to));
    }
    return OK;
}

/* Returns the kind of the values in "a|b|c". */
static HfKind kind_of(const char *values)
{
    if (strcmp(values, "true") == 0 || strcmp(values, "false") == 0) return HF_BOOL;
    return strspn(values, "+-.0123456789eE|") == strlen(values) ? HF_NUMBER : HF_TEXT;
}

/* Checks that the value is one of row->values. If row->values is "null", the field is for a feature
 * that weft lacks, and any other value is refused. */
static Status check_values(HfFields *f, const HfType *type, const HfRow *row, const HfField *field)
{
    const bool none = strcmp(row->values, "null") == 0;
    if (none ? !hf_value(f, field->name) : field->kind == HF_NULL) return OK;
    if (!none) TRY(hf_check_kind(f, field, kind_of(row->values)));
    if (!none && is_one_of(field, row->values)) return OK;
    return hf_refuse(f, field, "weft supports %s only with %s", type->type,
                     none ? "null or without the field" : row->values);
}

static Status check_only(HfFields *f, const HfType *type)
{
    for (int i = 0; i < f->count; ++i) {
        HfField *field = &f->field[i];
        if (strchr(field->name, '.')) continue;
        const HfRow *row = find_row(field->name, type);
        field->known = row || family_listed(neutral, field->name);
        if (!row) continue;
        if (row->use == USE_ONLY) TRY(check_values(f, type, row, field));
    }
    return OK;
}

/* Warns of unknown fields. A member of an object is named only if the object is one that
 * hf_rope_read reads; for other objects the object itself is named. */
static void warn_of_unknown(const HfFields *f)
{
    TextList names;
    text_list_begin(&names, 20);
    for (int i = 0; i < f->count; ++i) {
        const HfField *field = &f->field[i];
        const bool member = strchr(field->name, '.') != NULL;
        const bool rope = strncmp(field->name, "rope_", 5) == 0;
        if (!field->known && (!member || rope) && field->kind != HF_NULL)
            text_list_add(&names, field->name);
    }
    const int count = names.count;
    char *text = text_list_end(&names);
    if (count) log_warn("%s: not known here, and taken to change nothing: %s", f->path, text);
    mem_free(&text);
}

static Status check_sizes(const HfModel *m, HfFields *f)
{
    const struct {
        const char *what;
        int64_t value;
    } least[] = {{"the width", m->width},
                 {"the number of blocks", m->layers},
                 {"the number of heads", m->heads},
                 {"the vocabulary", m->vocab}};
    for (size_t i = 0; i < sizeof least / sizeof *least; ++i)
        if (least[i].value < 1) return fail(ERR_DATA, "%s: %s is 0", f->path, least[i].what);
    if (m->width % m->heads != 0)
        return fail(ERR_DATA, "%s: its %lld heads do not divide its width of %lld", f->path,
                    (long long)m->heads, (long long)m->width);
    const HfField *head = hf_value(f, "head_dim");
    if (m->head_width > 0 && m->head_width != m->width / m->heads)
        return hf_refuse(f, head, "weft has heads of hidden_size / num_attention_heads, %lld",
                         (long long)(m->width / m->heads));
    if (m->kv_heads > 0 && m->heads % m->kv_heads != 0)
        return fail(ERR_DATA, "%s: num_key_value_heads (%lld) does not divide the heads (%lld)",
                    f->path, (long long)m->kv_heads, (long long)m->heads);
    return OK;
}

static Status check_gpt2(const HfModel *m, HfFields *f)
{
    if (m->ffn > 0 && m->ffn != 4 * m->width)
        return hf_refuse(f, hf_value(f, "n_inner"), "weft's gpt2 has 4 n_embd, %lld",
                         (long long)(4 * m->width));
    if (!m->tied)
        return hf_refuse(f, hf_find(f, "tie_word_embeddings"),
                         "weft's gpt2 has a head that is tied to wte");
    return OK;
}

/* ---- translation to weft's configuration ---- */

static void put_real(FILE *out, const char *key, double value)
{
    fprintf(out, "  %s: ", key);
    text_real(out, value);
    fputc('\n', out);
}

static void put_llama(const HfModel *m, FILE *out)
{
    if (m->kv_heads) fprintf(out, "  kv_heads: %lld\n", (long long)m->kv_heads);
    fprintf(out, "  ffn: %lld\n", (long long)m->ffn);
    put_real(out, "rotary_base", m->rotary_base);
    if (m->rope_scaling) fprintf(out, "  rope_scaling: %s\n", m->rope_scaling);
    if (m->window) fprintf(out, "  window: %lld\n", (long long)m->window);
    if (m->window_from) fprintf(out, "  window_from: %lld\n", (long long)m->window_from);
    if (m->qkv_bias) fprintf(out, "  qkv_bias: true\n");
    put_real(out, "rms_eps", m->rms_eps);
    if (m->tied) fprintf(out, "  tied: true\n");
}

static char *model_text(const HfModel *m)
{
    char *text = NULL;
    size_t bytes = 0;
    const bool gpt2 = strcmp(m->name, "gpt2") == 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) die_as(ERR_MEMORY, "out of memory");
    fprintf(out, "model:\n  name: %s\n  layers: %lld\n  width: %lld\n  heads: %lld\n", m->name,
            (long long)m->layers, (long long)m->width, (long long)m->heads);
    if (gpt2)
        fprintf(out, "  context: %lld\n", (long long)m->context);
    else
        put_llama(m, out);
    fprintf(out, "  vocab: %lld\n", (long long)m->vocab);
    if (fclose(out) != 0) die_as(ERR_MEMORY, "out of memory");
    return text;
}

Status hf_model_read(HfModel *m, HfFields *f, const Family *family)
{
    const HfType *type;
    *m = (HfModel){0};
    TRY(read_type(f, family, &type));
    m->name = type->name;
    m->qkv_bias = type->bit == QWEN2;
    TRY(check_only(f, type));
    TRY(read_rows(m, f, type));
    TRY(check_sizes(m, f));
    if (type->bit == GPT2)
        TRY(check_gpt2(m, f));
    else {
        TRY(hf_rope_read(m, f));
        TRY(hf_window_read(m, f, type->type));
    }
    warn_of_unknown(f);
    m->text = model_text(m);
    return OK;
}

void hf_model_fini(HfModel *m)
{
    mem_free(&m->rope_scaling);
    mem_free(&m->text);
}
