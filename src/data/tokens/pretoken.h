/* Declares a search by GPT-2's pattern, which splits a text into the words inside which tokens are
 * merged:
 *
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
#ifndef WEFT_DATA_PRETOKEN_H
#define WEFT_DATA_PRETOKEN_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the number of bytes of the word at the beginning of a text of n > 0 bytes. final: true if
 * the text ends after these bytes. If more bytes follow (false) and the result may depend on them,
 * returns 0. */
size_t first_word_bytes(const unsigned char *text, size_t n, bool final);

#endif
