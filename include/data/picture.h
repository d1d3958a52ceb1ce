/* Pictures to inputs of a model: augmentation, decoding, resampling, cropping. */
#ifndef WEFT_DATA_PICTURE_H
#define WEFT_DATA_PICTURE_H

#include "data/reader.h"
#include "image.h"

/* Converts a raw sample of images or of a table to float (C,H,W), or (D): augmented (if training),
 * scaled, normalised. Only for sets for which data_needs_picture_work is false. Random choices are
 * keyed by (seed, epoch, sample). */
void augment_sample(const DataSet *set, const Config *config, bool training, int64_t epoch,
                    int64_t sample, const void *raw, float *out);

/* Do the set's images need decoding, resampling, cropping or colour changes? If so, PictureWork
 * prepares them; if not, augment_sample does. config may be NULL. */
bool data_needs_picture_work(const DataSet *set, const Config *config);
/* Decoder, resampler and scratch memory of one thread, which converts pictures to model inputs by
 * the keys of `data`: resamples and crops a part of each, in training with random choices keyed by
 * (seed, epoch, sample). Borrows set and config. */
typedef struct PictureWork PictureWork;
PictureWork *picture_work_new(const DataSet *set, const Config *config);
void picture_work_free(PictureWork **work);
/* Prepares a picture from another source in the way in which evaluation prepares the set's
 * pictures. picture: any size, upright. out: float (C,H,W), scaled and normalised by the set's mean
 * and deviation. For a set of decoded images the picture is first resized as the import does: it is
 * made to cover the images' size, and its centre is cropped; for a set of boxes the whole picture
 * is fitted in. ERR_DATA, with name: the picture is too narrow for that. */
Status picture_prepare(PictureWork *work, const Image *picture, const char *name, float *out);
/* Prepares a sample of a set for which data_needs_picture_work is true. ERR_DATA with file and
 * sample. */
Status picture_prepare_sample(PictureWork *work, Reader *reader, bool training, int64_t epoch,
                              int64_t sample, float *out);
/* Reads the whole picture of a sample of a set of boxes, upright and without the margins of a
 * stored square. *picture: borrowed until the next call with this work. ERR_IO; ERR_DATA: the
 * picture is damaged, or its boxes belong to a picture of another size. */
Status picture_read(PictureWork *work, Reader *reader, const DataBoxes *boxes, int64_t sample,
                    const Image **picture);
/* Returns the approximate bytes of a PictureWork, for the memory plan; encoded pictures are assumed
 * to be of usual size. */
size_t picture_work_bytes(const DataSet *set);

#endif
