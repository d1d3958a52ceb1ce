/* data: opens and checks data sets in HDF5 files, and reads samples: their order, augmentation, and
 * the loader. One rank opens and checks a set; the others receive the DataSet by train_bcast_set.
 * Each reader and each loader opens the files on its own rank. data/import.h declares the imports,
 * which write data sets. No function here is collective. */
#ifndef WEFT_DATA_H
#define WEFT_DATA_H

#include "data/config_words.h"
#include "data/set.h"
#include "data/labels.h"
#include "data/ranges.h"
#include "data/field_stats.h"
#include "data/hdf5.h"
#include "data/reader.h"
#include "data/picture.h"
#include "data/loader.h"
#include "data/table_text.h"

#endif
