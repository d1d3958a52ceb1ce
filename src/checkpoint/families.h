/* How models are written elsewhere: names and layouts of their tensors there, beside weft's. */
#ifndef WEFT_CHECKPOINT_FAMILIES_H
#define WEFT_CHECKPOINT_FAMILIES_H

#include <stdbool.h>

enum { PACKED = 3 };
/* Rows of several tensors there, one below the other, are one tensor of weft's. Parts of names;
 * part[k] NULL: no more. */
typedef struct FamilyPack {
    const char *here, *part[PACKED];
} FamilyPack;
typedef struct Family {
    const char *name, *help;
    /* a tensor that only this family has, there and here; NULL: the last family, of whoever has
     * none of the others' */
    const char *mark_there, *mark_here;
    /* what names begin with there, where they do: taken away, and written */
    const char *prefix;
    /* tensors without it: patterns; NULL ends, all of these */
    const char *const *bare;
    /* patterns of names without the prefix: not parameters; matrices in x out there */
    const char *const *skip, *const *transposed;
    /* .here NULL ends */
    const FamilyPack *pack;
    /* the head's tensor, and the tensor that it equals where it is tied; NULL: there is no head */
    const char *tied_head, *tied_to;
    /* true where the head may be a tensor of its own */
    bool may_untie;
} Family;
extern const Family families[];
extern const int family_count;

bool family_listed(const char *const *patterns, const char *name);

#endif
