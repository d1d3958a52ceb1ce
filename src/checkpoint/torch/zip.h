/* Reads the directory of a zip file as torch.save writes it: members that are stored, not
 * compressed, and zip64. */
#ifndef WEFT_CHECKPOINT_ZIP_H
#define WEFT_CHECKPOINT_ZIP_H

#include "../foreign/foreign_set.h"

typedef struct ZipMember {
    /* owned */
    char *name;
    /* offset of the member's bytes in the file */
    int64_t begin;
    /* length of the member in the file */
    int64_t bytes;
    /* expected CRC-32 of the member */
    uint32_t crc;
    /* true: the member is compressed or encrypted, and cannot be read */
    bool packed;
    /* true: the bytes have been found to match `crc` */
    bool checked;
} ZipMember;
typedef struct Zip {
    /* borrowed */
    const ForeignFile *file;
    int count;
    /* members, [count], sorted by name; owned */
    ZipMember *member;
} Zip;

/* Reads the directory and every member's own header. ERR_DATA: a file that is truncated, or one of
 * several volumes; members that overlap, are outside the file or have the same name; more than 2^21
 * members, or a directory above 256 MiB. Release with zip_close in every case. */
Status zip_open(Zip *zip, const ForeignFile *file);
void zip_close(Zip *zip);
/* Returns the member of that name, or NULL; borrowed. */
ZipMember *zip_find(const Zip *zip, const char *name);
/* Verifies the member's bytes, unless this was done before. ERR_DATA: the checksum is wrong, or the
 * member is packed. ERR_IO: a read fails. */
Status zip_check(const Zip *zip, ZipMember *member);
/* Reads and verifies all bytes of a member, and appends a zero byte. ERR_DATA: the member has more
 * than `most` bytes. Owner of *bytes: the caller. */
Status zip_read(const Zip *zip, ZipMember *member, int64_t most, uint8_t **bytes);

#endif
