/* GPT-2's words: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
#ifndef WEFT_DATA_PRETOKEN_H
#define WEFT_DATA_PRETOKEN_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the word that the text begins with, which has n > 0 bytes. final: nothing follows them;
 * else 0 where what follows may matter. */
size_t pretoken(const unsigned char *text, size_t n, bool final);

#endif
