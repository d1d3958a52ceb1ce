/* Converts pictures to inputs of a model: decodes, resamples, crops and augments them. Not
 * collective. */
#ifndef WEFT_DATA_PICTURE_H
#define WEFT_DATA_PICTURE_H

#include "data/reader.h"
#include "image.h"

/* Converts one raw sample to floats: an image to (C,H,W), a row of a table to (D). Scales and
 * normalises it; in training an image is augmented, too, by random choices that depend only on
 * (seed, epoch, sample). Only for sets for which data_needs_picture_converter is false. */
void augment_sample(const DataSet *set, const Config *config, bool training, int64_t epoch,
                    int64_t sample, const void *raw, float *out);

/* Returns true if augment_sample is not enough to prepare the set's images, so that a
 * PictureConverter must do it. This is so if images must be decoded, resampled, cropped (by
 * data.center_crop or data.random_resized_crop; augment_sample does the crops of data.augment), or
 * changed in colour. In a set of boxes it is also so if pictures must
 * be placed (letterbox, mosaic, shifts). config may be NULL. */
bool data_needs_picture_converter(const DataSet *set, const Config *config);
/* Decoder, resampler and scratch memory of one thread. With them the thread decodes a picture, and
 * crops and resamples it as section data of the configuration says; in training, random choices
 * depend only on (seed, epoch, sample). Borrows set and config. */
typedef struct PictureConverter PictureConverter;
PictureConverter *picture_converter_new(const DataSet *set, const Config *config);
void picture_converter_free(PictureConverter **converter);
/* Prepares a picture from another source as an evaluation prepares the set's pictures. picture: an
 * upright picture of any size. out: float (C,H,W), scaled, and normalised by the set's mean and
 * deviation. If the set stores decoded pixels, the picture is first brought to their size as `weft
 * data import` would: it is resized to cover that size, then cropped at the centre; for a set of
 * boxes the whole picture is resized to fit inside. ERR_DATA: the picture is too narrow for this.
 * name: name of the picture, with which the message begins. */
Status picture_prepare(PictureConverter *converter, const Image *picture, const char *name,
                       float *out);
/* Prepares a sample of a set for which data_needs_picture_converter is true. out: float (C,H,W).
 * ERR_IO: reading failed. ERR_DATA: the picture is damaged or unusable; the message has file and
 * sample. */
Status picture_prepare_sample(PictureConverter *converter, Reader *reader, bool training,
                              int64_t epoch, int64_t sample, float *out);
/* Reads the picture of a sample of a set of boxes. It is upright; if the import has stored it in a
 * square, the margins are cut off. *picture: borrowed until the next call with this converter.
 * ERR_IO. ERR_DATA: the picture is damaged, or its boxes belong to a picture of another size. */
Status picture_read(PictureConverter *converter, Reader *reader, const DataBoxes *boxes,
                    int64_t sample, const Image **picture);
/* Returns the approximate bytes of a PictureConverter, for the plan of memory; encoded pictures are
 * assumed to have a usual size. */
size_t picture_converter_bytes(const DataSet *set);

#endif
