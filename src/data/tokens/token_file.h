/* The format of the tokens in a file, by its header; for a file without a header, a check whether
 * the values fit the format that the user gave. */
#ifndef WEFT_DATA_TOKEN_FILE_H
#define WEFT_DATA_TOKEN_FILE_H

#include "base.h"

typedef struct TokenFormat {
    /* name of the format; NULL: tokens without a header */
    const char *name;
    /* bytes before the first token; bytes of a token: 1, 2, 4 or 8 */
    int64_t offset;
    int bytes;
    bool big_endian, is_signed;
    /* number of tokens by the header; -1: no header, the tokens end with the file */
    int64_t count;
} TokenFormat;

/* bytes at the beginning of a file that the next two functions look at */
enum { TOKEN_HEAD_MAX = 1 << 16 };

/* Fails with ERR_DATA if the file is of a known kind that has neither text nor tokens to import.
 * head: its first TOKEN_HEAD_MAX bytes, or all if it has fewer; bytes: their number; size: size of
 * the file in bytes, INT64_MAX if it is packed. */
Status token_file_refuse_other_kinds(const char *path, const uint8_t *head, size_t bytes,
                                     int64_t size);
/* Reads the format from the header, which must agree with bits (16, 32, 64, or 0: not given);
 * without a header, bits decides. ERR_DATA, ERR_USAGE. */
Status token_format_read(TokenFormat *format, const char *path, const uint8_t *head, size_t bytes,
                         int bits);
/* Returns the token whose bytes begin at p; INT64_MAX if it is larger than that. */
int64_t token_value(const TokenFormat *format, const uint8_t *p);

/* Statistics of the tokens of a file without a header, for checking their width and byte order. All
 * zero: no token yet. Release with token_evidence_fini. */
typedef struct TokenEvidence {
    int64_t count;
    /* largest value at even and at odd positions: as read, and with its bytes swapped */
    uint64_t largest[2], swapped[2];
    /* true: a token other than 0 occurred at a position that is not a multiple of four */
    bool others_not_zero;
    /* largest value of each byte of a token */
    uint8_t byte_max[8];
    /* true: a byte that is not ASCII text occurred */
    bool not_text;
    /* owned: bit set of the values that the low 16 bits had, and their number */
    uint8_t *seen;
    int64_t distinct;
} TokenEvidence;
/* Adds `count` tokens, whose bytes begin at p. */
void token_evidence_add(TokenEvidence *e, const TokenFormat *format, const uint8_t *p,
                        int64_t count);
/* Fails with ERR_DATA if the values contradict the format. has_vocab: the user gave the size of the
 * vocabulary. */
Status token_evidence_check(const TokenEvidence *e, const TokenFormat *format, const char *path,
                            bool has_vocab);
void token_evidence_fini(TokenEvidence *e);

#endif
