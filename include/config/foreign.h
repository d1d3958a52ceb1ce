/* Words of other programs (PyTorch, Lightning, Hugging Face, timm, Megatron, DeepSpeed, Keras,
 * torchrun, Slurm, YOLO) and weft's words for them. The table is used only for error messages: no
 * foreign word is accepted as input. */
#ifndef WEFT_CONFIG_FOREIGN_H
#define WEFT_CONFIG_FOREIGN_H

#include "base.h"

/* Values of ForeignWord.where: a key or a section of a configuration, an option or a verb of the
 * command line, a layer of model.layers or one of its attributes. FOREIGN_FLAG is an option, too,
 * but its hint is given only by verbs that have the flag ForeignWord.weft. Any other `where` is a
 * key, such as "optim.name" if the word is a value of this key, or the beginning of a command, such
 * as "data import" if the word follows it. */
#define FOREIGN_KEY     "key"
#define FOREIGN_SECTION "section"
#define FOREIGN_OPTION  "option"
#define FOREIGN_FLAG    "flag"
#define FOREIGN_VERB    "verb"
#define FOREIGN_LAYER   "layer"
#define FOREIGN_ATTR    "attribute"

typedef struct ForeignWord {
    /* place of the word: one of the constants above, a key, or the beginning of a command */
    const char *where;
    /* words of the same meaning, "batch_size|bs"; case, '-', '_', '.' and blanks are ignored;
     * "vgg*" matches all words with that beginning */
    const char *words;
    /* weft's word: a key, a section, "weft train -n", a flag, a verb, a layer, an attribute, a
     * value; NULL: weft has no such word */
    const char *weft;
    /* further text for the message; NULL: none */
    const char *note;
} ForeignWord;
/* The parts of the table. foreign_keys: keys and sections; foreign_values: values of keys, kinds of
 * layers, and attributes; foreign_commands: options and verbs of the command line. The last row's
 * `where` is NULL. */
extern const ForeignWord foreign_keys[], foreign_values[], foreign_commands[];

/* Returns the row of a word at a place (ForeignWord.where); NULL: there is none. */
const ForeignWord *foreign_find(const char *where, const char *word);
/* Returns text for the end of a message: "that is train.batch here: samples of a step", or only the
 * note if weft has no such word. NULL: the word is not in the table. The caller owns the text. */
char *foreign_text(const char *where, const char *word);
/* True if two words differ at most in case, '-', '_', '.' and blanks. */
bool foreign_same(const char *a, const char *b);

#endif
