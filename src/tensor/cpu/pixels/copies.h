/* The shared code of pad and of upsample to nearest pixels: an image y whose pixels are copies of
 * pixels of an image x of the same layout, or 0. The row of x that a pixel of y copies depends only
 * on the pixel's row, and the column of x only on the pixel's column. */
#ifndef WEFT_TENSOR_CPU_COPIES_H
#define WEFT_TENSOR_CPU_COPIES_H

#include "../view.h"

/* Returns the row (d = 0) or column (d = 1) of x that row or column `at` of y copies; -1 if y is 0
 * there. */
typedef int64_t (*CopySource)(const OpSpec *spec, int d, int64_t at);

/* which pixels of y copy which pixels of x */
typedef struct Copies Copies;

/* Owner: the caller; released by copies_free. */
Copies *copies_new(const OpSpec *spec, CopySource source);
void copies_free(Copies **copies);
/* Writes y from x. */
void copies_forward(const Copies *c, const Op *op, const OpRun *run);
/* Writes dx from dy, unless dx is NULL. The gradient of a pixel is the sum of dy over its copies,
 * row by row, from left to right. */
void copies_backward(const Copies *c, const Op *op, const OpRun *run);

#endif
