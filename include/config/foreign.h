/* Maps words of other programs (PyTorch, Lightning, Hugging Face, timm, Megatron, DeepSpeed, Keras,
 * torchrun, Slurm, YOLO) to weft's words. The table is used only for error messages: no foreign
 * word is accepted as input. Not collective. */
#ifndef WEFT_CONFIG_FOREIGN_H
#define WEFT_CONFIG_FOREIGN_H

#include "base.h"

/* Values of ForeignWord.where: the word is a key or a section of a configuration, an option or a
 * verb of the command line, a layer of model.layers or one of its attributes. FOREIGN_FLAG is an
 * option, too, but only verbs that have the flag ForeignWord.weft give its hint. Any other value of
 * `where` is a key, such as "optim.name", if the word is a value of this key; or the beginning of a
 * command, such as "data import", if the word follows it. */
#define FOREIGN_KEY     "key"
#define FOREIGN_SECTION "section"
#define FOREIGN_OPTION  "option"
#define FOREIGN_FLAG    "flag"
#define FOREIGN_VERB    "verb"
#define FOREIGN_LAYER   "layer"
#define FOREIGN_ATTR    "attribute"

/* A row of the table. */
typedef struct ForeignWord {
    /* place of the word: one of the constants above, a key, or the beginning of a command */
    const char *where;
    /* words of the same meaning, "batch_size|bs". Letter case, '-', '_', '.' and blanks are
     * ignored; "vgg*" matches all words that begin with vgg. */
    const char *words;
    /* weft's word with this meaning: a key, a section, "weft train -n", a flag, a verb, a layer, an
     * attribute or a value; NULL: weft has no such word */
    const char *weft;
    /* further text for the message; NULL: there is none */
    const char *note;
} ForeignWord;
/* The parts of the table. foreign_keys: keys and sections; foreign_values: values of keys, kinds of
 * layers, and attributes; foreign_commands: options and verbs of the command line. The last row's
 * `where` is NULL. */
extern const ForeignWord foreign_keys[], foreign_values[], foreign_commands[];

/* Returns the row of a word at a place (ForeignWord.where); NULL: there is none. */
const ForeignWord *foreign_find(const char *where, const char *word);
/* Returns the end of a message, "that is train.batch here: samples of a step", or only the note if
 * weft has no such word. Returns NULL if the word is not in the table. The caller owns the text. */
char *foreign_text(const char *where, const char *word);
/* Returns true if two words differ at most in letter case, '-', '_', '.' and blanks. */
bool foreign_same(const char *a, const char *b);

#endif
