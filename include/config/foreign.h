/* Words of other programs (PyTorch, Lightning, Hugging Face, timm, Megatron, DeepSpeed, Keras,
 * torchrun, Slurm, YOLO) and what stands for them here. One table, for messages alone: nothing is
 * taken for anything else. */
#ifndef WEFT_CONFIG_FOREIGN_H
#define WEFT_CONFIG_FOREIGN_H

#include "base.h"

/* Places where a word can stand: a key or a section of a configuration, an option or a verb of the
 * command line, a layer of model.layers or one of its attributes. A flag is an option of the verbs
 * that have a flag of the same meaning. Any other place is the key whose value the word is, or the
 * words of a command ("data import") that the word follows. */
#define FOREIGN_KEY     "key"
#define FOREIGN_SECTION "section"
#define FOREIGN_OPTION  "option"
#define FOREIGN_FLAG    "flag"
#define FOREIGN_VERB    "verb"
#define FOREIGN_LAYER   "layer"
#define FOREIGN_ATTR    "attribute"

typedef struct ForeignWord {
    const char *where;
    /* "batch_size|bs"; case, '-', '_', '.' and blanks do not count; "vgg*" stands for all words
     * that begin so */
    const char *words;
    /* weft's word: a key, a section, "weft train -n", a verb, a layer, an attribute, a value; NULL:
     * there is none */
    const char *here;
    /* further words for the reader; NULL: none */
    const char *note;
} ForeignWord;
/* The table's two halves: keys and sections, all else. The last row's where is NULL. */
extern const ForeignWord foreign_keys[], foreign_values[];

/* The row of that word at that place; NULL: the table has none. */
const ForeignWord *foreign_find(const char *where, const char *word);
/* "that is train.batch here: samples of a step", or the note where there is no such word here, as
 * the end of a message; NULL: the table has no
 * such word. Owner: the caller. */
char *foreign_text(const char *where, const char *word);
/* Do two words differ in case, '-', '_', '.' and blanks only? */
bool foreign_same(const char *a, const char *b);

#endif
