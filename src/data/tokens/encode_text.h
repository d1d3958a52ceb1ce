/* Encodes a text file with a tokenizer into a temporary file next to the data set to be written. */
#ifndef WEFT_DATA_ENCODE_TEXT_H
#define WEFT_DATA_ENCODE_TEXT_H

#include "data/tokenizer.h"

/* Result of encode_text: amounts read and written. */
typedef struct Encoded {
    /* bits of a token in the file: 16 or 32 */
    int bits;
    int64_t text_bytes, tokens;
    double seconds;
} Encoded;
/* Encodes a text file, plain or .gz. to: path of the file of little-endian tokens to write; it is
 * replaced if it exists, and removed if encoding fails. special: as for tokenizer_encode.
 * ERR_NOINPUT, ERR_IO; ERR_DATA: a damaged .gz, a file of another kind, or a word of more than
 * 64 MB. */
Status encode_text(Tokenizer *tokenizer, const char *file, bool special, const char *to,
                   Encoded *result);

#endif
