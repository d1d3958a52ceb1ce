/* Declares how a text file is encoded with a tokenizer into a temporary file next to the data set
 * that is to be written. */
#ifndef WEFT_DATA_ENCODE_TEXT_H
#define WEFT_DATA_ENCODE_TEXT_H

#include "data/tokenizer.h"

/* Result of encode_text: amounts read and written. */
typedef struct Encoded {
    /* bits of a token in the temporary file: 16 or 32 */
    int bits;
    /* text_bytes: number of unpacked bytes read; tokens: number of tokens written */
    int64_t text_bytes, tokens;
    /* time taken */
    double seconds;
} Encoded;
/* Encodes a text file, plain or .gz. special: as for tokenizer_encode; `to`: path of the file of
 * little-endian tokens to write, which is replaced if it exists, and removed if encoding fails.
 * ERR_NOINPUT, ERR_IO; ERR_DATA: the .gz is damaged, the file is of another kind, or a word has
 * more than 64 MB. */
Status encode_text(Tokenizer *tokenizer, const char *file, bool special, const char *to,
                   Encoded *result);

#endif
