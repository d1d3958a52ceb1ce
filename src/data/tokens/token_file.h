/* The format of the tokens in a file, by its header; if there is none, evidence for it from the
 * values. */
#ifndef WEFT_DATA_TOKEN_FILE_H
#define WEFT_DATA_TOKEN_FILE_H

#include "base.h"

typedef struct TokenFormat {
    /* name of the format; NULL: numbers without a header */
    const char *name;
    /* bytes before the first token; bytes of a token: 1, 2, 4 or 8 */
    int64_t offset;
    int bytes;
    bool big_endian, is_signed;
    /* number of tokens by the header; -1: up to the end of the file */
    int64_t count;
} TokenFormat;

enum { TOKEN_HEAD_MOST = 1 << 16 };

/* ERR_DATA: the file is of a known kind that holds neither text nor tokens. head: its first
 * TOKEN_HEAD_MOST bytes, or all; size: bytes of the file. */
Status token_file_refuse_other_kinds(const char *path, const uint8_t *head, size_t bytes,
                                     int64_t size);
/* Reads the format from the header, which must agree with bits (16, 32, 64, or 0: not given);
 * without a header, bits decides. ERR_DATA, ERR_USAGE. */
Status token_format_read(TokenFormat *format, const char *path, const uint8_t *head, size_t bytes,
                         int bits);
/* Returns the token at p; INT64_MAX if it is larger than that. */
int64_t token_value(const TokenFormat *format, const uint8_t *p);

/* Evidence for the width and byte order of tokens, from the values of a file without a header. */
typedef struct TokenEvidence {
    int64_t count;
    /* largest value at even and at odd positions: as read, and with its bytes swapped */
    uint64_t largest[2], swapped[2];
    /* a token other than 0 occurred at a position that is not a multiple of four */
    bool between_fourths;
    /* largest value of each byte of a token; a byte that is not ASCII text occurred */
    uint8_t byte_most[8];
    bool binary;
    /* owned: bit set of the low 16 bits that occurred, and their number */
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
