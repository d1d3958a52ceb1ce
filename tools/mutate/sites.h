/* The places of a C file where a mutant can be made. */
#ifndef WEFT_MUTATE_SITES_H
#define WEFT_MUTATE_SITES_H

#include <stdbool.h>
#include <stddef.h>

typedef enum RegionKind {
    REGION_CONDITION, /* condition of an if */
    REGION_LOOP,      /* condition of a while, do or for: it never becomes true */
    REGION_VALUE,     /* right side of an initialised declaration */
    REGION_RETURN,    /* value of a return statement */
    REGION_STATEMENT, /* expression statement or jump, with its semicolon */
} RegionKind;

/* A part of the text that is compiled twice: as it is, and with one site changed. */
typedef struct Region {
    RegionKind kind;
    /* offsets in the text; end is exclusive */
    size_t begin, end;
    int first_line, last_line;
    bool taken;
} Region;

/* One change. Without `with` the whole region is replaced by `what`, or removed if it is a
 * statement. */
typedef struct Site {
    int file, region, line;
    /* offset and length of the operator or number that is replaced by `with` */
    size_t at, length;
    const char *with;
    const char *what;
} Site;

typedef struct Source {
    const char *name;
    /* the file, and a copy with blanks in place of comments, texts and preprocessor lines */
    char *text, *code;
    size_t size;
    Region *region;
    int regions;
} Source;

typedef struct Sites {
    Site *site;
    int count;
} Sites;

/* Adds the sites of sources[file], in order of their offsets. Ends the program if there is no
 * memory. */
void sites_find(Source *sources, int file, Sites *sites);

/* Doubles the memory of items if count is a power of two; returns where they are then. */
void *array_grow(void *items, int count, size_t item_bytes);

#endif
