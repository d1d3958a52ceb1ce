/* Families of models in other programs' files: names and layouts of their tensors, next to
 * weft's. */
#ifndef WEFT_CHECKPOINT_FAMILIES_H
#define WEFT_CHECKPOINT_FAMILIES_H

#include "base.h"

enum { PACKED = 3 };
/* A tensor of weft's that consists of several tensors in the other program, one below the other by
 * rows. in_weft: part of weft's name; part[k]: part of the other names, NULL after the last. */
typedef struct FamilyPack {
    const char *in_weft, *part[PACKED];
} FamilyPack;
typedef struct Family {
    const char *name, *help;
    /* name of a tensor that only this family has, in the other program and in weft; NULL in the
     * last row, the family of all files that have none of the marks */
    const char *foreign_mark, *weft_mark;
    /* prefix of names in the other program: removed if present, and written */
    const char *prefix;
    /* patterns of names that are written without the prefix; NULL ends this list and those below */
    const char *const *bare;
    /* patterns of names without the prefix. skip: tensors that are not parameters; transposed:
     * matrices that are stored as (in, out) */
    const char *const *skip, *const *transposed;
    /* ends with a row whose .in_weft is NULL */
    const FamilyPack *pack;
    /* name of the head's weight, and of the tensor that it equals where it is tied; NULL: no
     * head */
    const char *tied_head, *tied_to;
    /* true where the head may be a separate tensor */
    bool may_untie;
} Family;
extern const Family families[];
/* ERR_BUG, naming the row, if it lacks something; last: it is the family without marks. */
Status family_check(const Family *family, bool last);
extern const int family_count;

bool family_listed(const char *const *patterns, const char *name);

#endif
