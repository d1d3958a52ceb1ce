/* Format of the tokens in a file, by its header; without one it is checked against the values. */
#ifndef WEFT_DATA_TOKEN_FILE_H
#define WEFT_DATA_TOKEN_FILE_H

#include "base.h"

typedef struct TokenFormat {
    /* the format's name; NULL: numbers alone, without a header */
    const char *name;
    /* bytes before the first token; bytes of a token: 1, 2, 4 or 8 */
    int64_t offset;
    int bytes;
    bool big_endian, is_signed;
    /* number of tokens by the header; -1: as many as there are */
    int64_t count;
} TokenFormat;

enum { TOKEN_HEAD_MOST = 1 << 16 };

/* ERR_DATA: these bytes begin a file of a known kind that holds something other than text or
 * tokens. head: the first bytes of it, TOKEN_HEAD_MOST or all; size: of the file. */
Status token_file_foreign(const char *path, const uint8_t *head, size_t bytes, int64_t size);
/* Takes the format from the header, which must agree with bits; without one, from bits: 16, 32 or
 * 64, 0: not given. ERR_DATA, ERR_USAGE. */
Status token_format_read(TokenFormat *format, const char *path, const uint8_t *head, size_t bytes,
                         int bits);
/* The token at p. INT64_MAX: it is larger than that. */
int64_t token_value(const TokenFormat *format, const uint8_t *p);

/* Evidence for the width and byte order of tokens, from the values of a file without a header. */
typedef struct TokenEvidence {
    int64_t count;
    /* largest value at even and at odd places: as the file is read, and with its bytes swapped */
    uint64_t largest[2], swapped[2];
    /* a token other than 0 came at a place that is no multiple of four */
    bool between_fourths;
    /* the largest byte at each place in a token; a byte came that is none of ASCII text */
    uint8_t byte_most[8];
    bool binary;
    /* owned: the low 16 bits that came, a bit each; how many there are */
    uint8_t *seen;
    int64_t distinct;
} TokenEvidence;
void token_evidence_add(TokenEvidence *e, const TokenFormat *format, const uint8_t *p,
                        int64_t count);
/* ERR_DATA: the values contradict the format. has_vocab: the size of the vocabulary is given. */
Status token_evidence_judge(const TokenEvidence *e, const TokenFormat *format, const char *path,
                            bool has_vocab);
void token_evidence_fini(TokenEvidence *e);

#endif
