/* What of resume.c the run loop needs. */
#ifndef WEFT_TRAIN_RESUME_H
#define WEFT_TRAIN_RESUME_H

#include "train.h"

/* ERR_CONFIG, naming the first difference, if path was written under a configuration with other numbers. Not collective. */
Status resume_check(const Config *config, const char *path);

#endif
