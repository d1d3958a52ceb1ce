/* A text file as a tokenizer's tokens, in a file beside the data set that is to be written. */
#ifndef WEFT_DATA_ENCODE_TEXT_H
#define WEFT_DATA_ENCODE_TEXT_H

#include "data/tokenizer.h"

/* What was read and made. */
typedef struct Encoded {
    /* 16 or 32 */
    int bits;
    int64_t text_bytes, tokens;
    double seconds;
} Encoded;
/* file: plain or .gz. to: little-endian numbers, replaced; removed where it fails. ERR_NOINPUT,
 * ERR_IO; ERR_DATA: a .gz that is damaged, a word of more than 64 MB. */
Status encode_text(Tokenizer *tokenizer, const char *file, bool special, const char *to,
                   Encoded *made);

#endif
