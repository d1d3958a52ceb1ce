/* Declares how the format of the tokens in a file is found from its header. If a file has no
 * header, a check decides whether the values fit the format that the user gave. */
#ifndef WEFT_DATA_TOKEN_FILE_H
#define WEFT_DATA_TOKEN_FILE_H

#include "base.h"

typedef struct TokenFormat {
    /* name of the format; NULL: tokens without a header */
    const char *name;
    /* number of bytes before the first token */
    int64_t offset;
    /* number of bytes of a token: 1, 2, 4 or 8 */
    int bytes;
    bool big_endian, is_signed;
    /* number of tokens, from the header; -1: there is no header, the tokens end with the file */
    int64_t count;
} TokenFormat;

/* number of bytes at the beginning of a file that the next two functions read */
enum { TOKEN_HEAD_MAX = 1 << 16 };

/* Returns ERR_DATA if the file is of a known kind that cannot be imported as it is. head: the first
 * TOKEN_HEAD_MAX bytes of the file, or all bytes of a shorter file; bytes: their number; size: size
 * of the file in bytes; INT64_MAX: the file is packed. */
Status token_file_refuse_other_kinds(const char *path, const uint8_t *head, size_t bytes,
                                     int64_t size);
/* Reads the format from the header. bits: bits of a token that the user gave (16, 32 or 64); 0: not
 * given. If there is a header, it must agree with `bits`; if there is none, `bits` decides.
 * ERR_DATA, ERR_USAGE. */
Status token_format_read(TokenFormat *format, const char *path, const uint8_t *head, size_t bytes,
                         int bits);
/* Returns the token whose bytes begin at p. A token above INT64_MAX becomes INT64_MAX. */
int64_t token_value(const TokenFormat *format, const uint8_t *p);

/* Statistics of the tokens of a file without a header, by which their width and byte order are
 * checked. All zero: there has been no token yet. Release with token_evidence_fini. */
typedef struct TokenEvidence {
    /* number of tokens */
    int64_t count;
    /* largest: largest value at even positions (index 0) and at odd positions (index 1); swapped:
     * the same for values with their bytes in reverse order */
    uint64_t largest[2], swapped[2];
    /* true: a token other than 0 was at a position that is not a multiple of four */
    bool others_not_zero;
    /* largest value of each byte of a token, the byte that is stored first at index 0 */
    uint8_t byte_max[8];
    /* true: there was a byte that is not ASCII text */
    bool not_text;
    /* set of the values that the low 16 bits of tokens had, a bit for each; owned */
    uint8_t *seen;
    /* number of values in `seen` */
    int64_t distinct;
} TokenEvidence;
/* Adds `count` tokens, whose bytes begin at p. */
void token_evidence_add(TokenEvidence *e, const TokenFormat *format, const uint8_t *p,
                        int64_t count);
/* Returns ERR_DATA if the values contradict the format. has_vocab: true if the user gave the size
 * of the vocabulary. */
Status token_evidence_check(const TokenEvidence *e, const TokenFormat *format, const char *path,
                            bool has_vocab);
void token_evidence_fini(TokenEvidence *e);

#endif
