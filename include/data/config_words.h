/* Values of keys of section data of the configuration. */
#ifndef WEFT_DATA_CONFIG_WORDS_H
#define WEFT_DATA_CONFIG_WORDS_H

#include "config.h"

/* Values of the keys data.layout (order of dimensions of stored images), data.augment (each value
 * is a bit), data.filter, data.shuffle and data.refresh. */
#define LAYOUT_WORDS(W)  W(LAYOUT_NCHW, "nchw") W(LAYOUT_NHWC, "nhwc")
#define AUGMENT_WORDS(W) W(AUGMENT_FLIP, "flip") W(AUGMENT_CROP, "crop") W(AUGMENT_CUTOUT, "cutout")
#define FILTER_WORDS(W)  W(FILTER_BILINEAR, "bilinear") W(FILTER_BICUBIC, "bicubic")
#define SHUFFLE_WORDS(W) W(SHUFFLE_AUTO, "auto") W(SHUFFLE_FULL, "full") W(SHUFFLE_CHUNKS, "chunks")
typedef enum DataLayout { LAYOUT_WORDS(LIST_CONSTANT) } DataLayout;
/* The values of data.filter are those of ImageFilter. */
enum { FILTER_WORDS(LIST_CONSTANT) };
#define REFRESH_WORDS(W) W(REFRESH_NEVER, "never") W(REFRESH_EPOCH, "epoch")
typedef enum DataShuffle { SHUFFLE_WORDS(LIST_CONSTANT) } DataShuffle;
typedef enum DataRefresh { REFRESH_WORDS(LIST_CONSTANT) } DataRefresh;
enum { AUGMENT_WORDS(LIST_NUMBER) };
enum { AUGMENT_WORDS(LIST_BIT) };
/* number of entries of data_words: one for each key above, and one for data.predict
 * (data/fields.h) */
enum { DATA_WORDS = 6 };
extern const ConfigWords data_words[DATA_WORDS];

#endif
