/* Families of models in other programs' files, and how names and layouts of their tensors differ
 * from weft's. */
#ifndef WEFT_CHECKPOINT_FAMILIES_H
#define WEFT_CHECKPOINT_FAMILIES_H

#include "base.h"

/* the most tensors that are packed into one */
enum { PACKED = 3 };
/* A packed tensor: one tensor in weft that has the rows of several tensors of the other program,
 * one tensor after the other. */
typedef struct FamilyPack {
    /* part of weft's name; part[k] stands for it in the name of the other program's tensor k */
    const char *in_weft;
    /* parts of names in the other program; NULL after the last one if there are fewer than
     * PACKED */
    const char *part[PACKED];
} FamilyPack;
typedef struct Family {
    const char *name;
    /* description for the help */
    const char *help;
    /* name in the other program, without the prefix, of a tensor that only this family has; NULL in
     * the last row, which is the family of all files without a mark */
    const char *foreign_mark;
    /* name in weft of a tensor that only this family has; NULL in the last row */
    const char *weft_mark;
    /* prefix of names in the other program: an import removes it if it is there, an export writes
     * it */
    const char *prefix;
    /* patterns of names that an export writes without the prefix; the list ends with NULL */
    const char *const *bare;
    /* patterns of names, without the prefix, of tensors that are not parameters; the list ends with
     * NULL */
    const char *const *skip;
    /* patterns of names, without the prefix, of matrices that are stored as (in, out); the list
     * ends with NULL */
    const char *const *transposed;
    /* packed tensors; the list ends with a row whose .in_weft is NULL */
    const FamilyPack *pack;
    /* name of the head's weight if the head may be tied; NULL: it is never tied */
    const char *tied_head;
    /* name of the tensor to which the head may be tied; NULL: it is never tied */
    const char *tied_to;
    /* true: the head may be a separate tensor; false: it is always tied */
    bool may_untie;
} Family;
extern const Family families[];
/* Checks that a row of families is complete. ERR_BUG: the row lacks something; the message names
 * the row. last: true for the last row, which is the family without marks. */
Status family_check(const Family *family, bool last);
extern const int family_count;

/* Returns true if the name fits a pattern of the list, which ends with NULL. */
bool family_listed(const char *const *patterns, const char *name);

#endif
