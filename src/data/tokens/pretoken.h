/* GPT-2's words: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
#ifndef WEFT_DATA_PRETOKEN_H
#define WEFT_DATA_PRETOKEN_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the bytes of the word at the beginning of a text of n > 0 bytes. final: the text ends
 * there; else returns 0 if the result may depend on what follows. */
size_t pretoken(const unsigned char *text, size_t n, bool final);

#endif
