/* Families of models in other programs' files, and how names and layouts of their tensors differ
 * from weft's. */
#ifndef WEFT_CHECKPOINT_FAMILIES_H
#define WEFT_CHECKPOINT_FAMILIES_H

#include "base.h"

enum { PACKED = 3 };
/* A tensor of weft that is several tensors in the other program; their rows follow each other in
 * it. in_weft: part of weft's name; part[k]: part of the other names, NULL after the last. */
typedef struct FamilyPack {
    const char *in_weft, *part[PACKED];
} FamilyPack;
typedef struct Family {
    const char *name, *help;
    /* name of a tensor that only this family has, in the other program and in weft; NULL in the
     * last row, which is the family of all files without a mark */
    const char *foreign_mark, *weft_mark;
    /* prefix of names in the other program: an import removes it if present, an export writes it */
    const char *prefix;
    /* patterns of names that an export writes without the prefix; this and the next two lists end
     * with NULL */
    const char *const *bare;
    /* patterns of names without the prefix. skip: tensors that are not parameters; transposed:
     * matrices that are stored as (in, out) */
    const char *const *skip, *const *transposed;
    /* ends with a row whose .in_weft is NULL */
    const FamilyPack *pack;
    /* name of the head's weight, and of the tensor to which the head may be tied; NULL: no head */
    const char *tied_head, *tied_to;
    /* true: the head may be a separate tensor; false: it is always tied */
    bool may_untie;
} Family;
extern const Family families[];
/* ERR_BUG, naming the row, if it lacks something; last: it is the family without marks. */
Status family_check(const Family *family, bool last);
extern const int family_count;

/* True if the name fits a pattern of the list, which ends with NULL. */
bool family_listed(const char *const *patterns, const char *name);

#endif
