/* Families of models in other programs' files, and how names and layouts of their tensors differ
 * from weft's. */
#ifndef WEFT_CHECKPOINT_FAMILIES_H
#define WEFT_CHECKPOINT_FAMILIES_H

#include "base.h"

/* the most tensors that are packed into one */
enum { PACKED = 3 };
/* A packed tensor: one tensor in weft, with the rows of several tensors of the other program, one
 * tensor after the other. in_weft: the part of weft's name that is replaced by part[k] in the name
 * of tensor k; part[k] is NULL if there are fewer tensors. */
typedef struct FamilyPack {
    const char *in_weft, *part[PACKED];
} FamilyPack;
typedef struct Family {
    const char *name, *help;
    /* name of a tensor that only this family has, in the other program (without the prefix) and in
     * weft; NULL in the last row, which is the family of all files without a mark */
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
    /* names of the head's weight and of the tensor to which the head may be tied; both NULL if no
     * head is ever tied */
    const char *tied_head, *tied_to;
    /* true if the head may be a separate tensor; false if it is always tied */
    bool may_untie;
} Family;
extern const Family families[];
/* ERR_BUG, naming the row, if the row lacks something; last: true for the last row, which is the
 * family without marks. */
Status family_check(const Family *family, bool last);
extern const int family_count;

/* True if the name fits a pattern of the list, which ends with NULL. */
bool family_listed(const char *const *patterns, const char *name);

#endif
