/* Words of other programs (PyTorch, Lightning, Hugging Face, timm, Megatron, DeepSpeed, Keras,
 * torchrun, Slurm, YOLO) and weft's words for them. The table only serves error messages: no
 * foreign word is accepted as input. */
#ifndef WEFT_CONFIG_FOREIGN_H
#define WEFT_CONFIG_FOREIGN_H

#include "base.h"

/* Places where a word can appear: a key or a section of a configuration, an option or a verb of the
 * command line, a layer of model.layers or one of its attributes. FOREIGN_FLAG is an option of
 * those verbs that have a flag of the same meaning. Any other value of `where` is a key, if the
 * word is its value, or the words of a command ("data import"), if the word follows them. */
#define FOREIGN_KEY     "key"
#define FOREIGN_SECTION "section"
#define FOREIGN_OPTION  "option"
#define FOREIGN_FLAG    "flag"
#define FOREIGN_VERB    "verb"
#define FOREIGN_LAYER   "layer"
#define FOREIGN_ATTR    "attribute"

typedef struct ForeignWord {
    const char *where;
    /* "batch_size|bs"; case, '-', '_', '.' and blanks are ignored; "vgg*" matches all words with
     * that beginning */
    const char *words;
    /* weft's word: a key, a section, "weft train -n", a verb, a layer, an attribute, a value; NULL:
     * weft has none */
    const char *weft;
    /* further text for the message; NULL: none */
    const char *note;
} ForeignWord;
/* The two halves of the table: keys and sections; everything else. The last row's where is NULL. */
extern const ForeignWord foreign_keys[], foreign_values[];

/* Returns the row of that word at that place; NULL: there is none. */
const ForeignWord *foreign_find(const char *where, const char *word);
/* Returns the end of a message, "that is train.batch here: samples of a step", or the note if weft
 * has no word for it; NULL: the table has no such word. The caller owns it. */
char *foreign_text(const char *where, const char *word);
/* True if two words are equal but for case, '-', '_', '.' and blanks. */
bool foreign_same(const char *a, const char *b);

#endif
