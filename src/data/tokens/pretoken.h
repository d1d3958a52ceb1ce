/* GPT-2's pattern that splits a text into words, within which tokens are merged:
 *
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
#ifndef WEFT_DATA_PRETOKEN_H
#define WEFT_DATA_PRETOKEN_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the number of bytes of the word at the beginning of a text of n > 0 bytes. final: the
 * text ends after the n bytes; false: more follow, and 0 is returned if the result may depend on
 * them. */
size_t first_word_bytes(const unsigned char *text, size_t n, bool final);

#endif
