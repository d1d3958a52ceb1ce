/* Translates a Hugging Face model description (config.json in the folder of the tensors) to weft's
 * configuration. */
#ifndef WEFT_CHECKPOINT_HF_MODEL_H
#define WEFT_CHECKPOINT_HF_MODEL_H

#include "families.h"
#include "hf_fields.h"

/* Values read from a description, with transformers' defaults for absent fields. A number is 0 if
 * the model type has no such field. */
typedef struct HfModel {
    /* number of blocks */
    int64_t layers;
    int64_t width, heads;
    /* number of heads of keys and values; 0: as many as `heads` */
    int64_t kv_heads;
    /* width of a head; 0: width / heads */
    int64_t head_width;
    /* width of the feed-forward layers; 0: 4 * width (gpt2) */
    int64_t ffn;
    int64_t context, vocab;
    /* tokens in the window of attention; 0: there is no window */
    int64_t window;
    /* index of the first block with a window */
    int64_t window_from;
    double rotary_base, rms_eps;
    /* true: the head is tied to the embedding */
    bool tied;
    /* true: the projections to queries, keys and values have a bias */
    bool qkv_bias;
    /* "{rope_type: ...}"; NULL without scaling; owned */
    char *rope_scaling;
    /* model.name of weft's configuration */
    const char *name;
    /* the lines of `model:` in weft's configuration; owned */
    char *text;
} HfModel;

/* Reads and checks all fields. ERR_DATA names the first field that changes results and is not
 * supported. Unknown fields are named in one warning. family: the family of the tensors. Release
 * `model` with hf_model_fini in every case. */
Status hf_model_read(HfModel *model, HfFields *fields, const Family *family);
void hf_model_fini(HfModel *model);
/* Returns true if weft has the description's model type or, if it names none, its architecture. */
bool hf_model_known(HfFields *fields);

/* Reads model.rope_scaling, from rope_scaling or rope_parameters, and model.rotary_base, the base
 * of the rotary angles. */
Status hf_rope_read(HfModel *model, HfFields *fields);
/* Reads the attention window and the first block with a window, from sliding_window and the fields
 * that modify it. type: model_type of the description. */
Status hf_window_read(HfModel *model, HfFields *fields, const char *type);
/* Reads a finite number. ERR_DATA: the field is no number. */
Status hf_number(const HfFields *fields, const HfField *field, double *value);
/* Reads a whole number from 0 to 2^31 - 1. ERR_DATA: the field has another value. */
Status hf_count(const HfFields *fields, const HfField *field, int64_t *value);
/* Reads true or false. ERR_DATA: the field has another value. */
Status hf_bool(const HfFields *fields, const HfField *field, bool *value);

#endif
