/* Maps words of other programs (PyTorch, Lightning, Hugging Face, timm, Megatron, DeepSpeed, Keras,
 * torchrun, Slurm, YOLO) to weft's words. The table is used only for error messages: no foreign
 * word is accepted as input. Not collective. */
#ifndef WEFT_CONFIG_FOREIGN_H
#define WEFT_CONFIG_FOREIGN_H

#include "base.h"

/* Values of ForeignWord.where: the word is a key or a section of a configuration, an option or a
 * verb of the command line, a layer of model.layers or one of its attributes. FOREIGN_FLAG is an
 * option, too; its hint is printed only if the verb of the command line has the flag
 * ForeignWord.weft. For a word that is a value of a key, `where` is the key, such as "optim.name".
 * For a word in a command, `where` is the part of the command before the word, such as "data
 * import". */
#define FOREIGN_KEY     "key"
#define FOREIGN_SECTION "section"
#define FOREIGN_OPTION  "option"
#define FOREIGN_FLAG    "flag"
#define FOREIGN_VERB    "verb"
#define FOREIGN_LAYER   "layer"
#define FOREIGN_ATTR    "attribute"

/* A row of the table. */
typedef struct ForeignWord {
    /* kind of the word (a constant above), or the key or the beginning of the command that it
     * follows */
    const char *where;
    /* words of the same meaning, "batch_size|bs". Letter case, '-', '_', '.' and blanks are
     * ignored; "vgg*" matches all words that begin with vgg. */
    const char *words;
    /* weft's word with this meaning: a key, a section, a flag, a verb ("ckpt diff"), a layer, an
     * attribute or a value, or a complete command ("weft train -n"); NULL: weft has no such word */
    const char *weft;
    /* further text for the message; NULL: there is none */
    const char *note;
} ForeignWord;
/* The parts of the table. foreign_keys: keys and sections; foreign_values: values of keys, kinds of
 * layers, and attributes; foreign_commands: options and verbs of the command line. The last row's
 * `where` is NULL. */
extern const ForeignWord foreign_keys[], foreign_values[], foreign_commands[];

/* Returns the row of a word whose ForeignWord.where is `where`; NULL: there is none. */
const ForeignWord *foreign_find(const char *where, const char *word);
/* Returns the end of a message, "that is train.batch here: samples of a step", or only the note if
 * weft has no such word. Returns NULL if the word is not in the table. The caller owns the text. */
char *foreign_text(const char *where, const char *word);
/* Returns true if two words differ at most in letter case, '-', '_', '.' and blanks. Returns false
 * if a word has no other characters, or more than 63 of them. */
bool foreign_words_match(const char *a, const char *b);

#endif
