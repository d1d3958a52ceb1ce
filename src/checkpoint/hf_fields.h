/* The fields of a description in JSON (config.json of Hugging Face's models), flat: an object
 * within the description gives a field of its own and one for each of its members, NAME.MEMBER. */
#ifndef WEFT_CHECKPOINT_HF_FIELDS_H
#define WEFT_CHECKPOINT_HF_FIELDS_H

#include "base.h"

typedef enum HfKind { HF_NULL, HF_BOOL, HF_NUMBER, HF_TEXT, HF_LIST, HF_OBJECT } HfKind;
typedef struct HfField {
    /* owned, both: "rope_scaling.factor"; the value as it is written, a text without its quotes, a
     * list's items between commas; of an object "{}" where it is empty, else "{...}" */
    char *name, *value;
    HfKind kind;
    /* hf_find has been called for this field */
    bool known;
} HfField;
typedef struct HfFields {
    /* borrowed */
    const char *path;
    int count;
    /* owned */
    HfField *field;
} HfFields;

/* Reads a description. ERR_NOINPUT, ERR_IO; ERR_DATA: no JSON, or a field that is there twice.
 * Release with hf_close in every case. */
Status hf_open(HfFields *fields, const char *path);
void hf_close(HfFields *fields);
/* The field of that name, which is known from now on; NULL: it is not there. */
const HfField *hf_find(HfFields *fields, const char *name);
/* hf_find that also returns NULL where the value is null or an empty object. */
const HfField *hf_value(HfFields *fields, const char *name);
/* ERR_DATA that names the description, the field and its value: "config.json: hidden_act is gelu:
 * why". */
Status hf_refuse(const HfFields *fields, const HfField *field, const char *fmt, ...)
    BASE_PRINTF(3, 4);
/* OK where the field is of that kind; else ERR_DATA that names its value, its kind and the expected
 * kind. */
Status hf_check_kind(const HfFields *fields, const HfField *field, HfKind kind);

#endif
