/* The font of draw.c. */
#ifndef WEFT_DETECT_DRAW_H
#define WEFT_DETECT_DRAW_H

#include "detect.h"

enum { FONT_WIDTH = 5, FONT_HEIGHT = 7 };
/* Is this pixel of a character's glyph set? */
bool font_is_set(unsigned char character, int x, int y);

#endif
