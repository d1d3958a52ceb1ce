#!/usr/bin/env python3
"""Writes src/base/width_table.h: which characters take no column of a terminal (marks that combine, formats, the middle and last letters of
Hangul's syllables), and which take two (East Asian Width W and F), by Python's own copy of Unicode's data.
usage: width_table.py >src/base/width_table.h"""
import sys, unicodedata


IDEOGRAPHS = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2FFFD), (0x30000, 0x3FFFD))


def columns(c):
    """None: no character, which may count as those before it."""
    if any(a <= c <= b for a, b in IDEOGRAPHS):
        return 2
    if c == 0xAD:  # a soft hyphen is shown where it is used
        return 1
    if 0x1160 <= c <= 0x11FF or unicodedata.category(chr(c)) in ("Mn", "Me", "Cf"):
        return 0
    if unicodedata.category(chr(c)) == "Cn":
        return None
    return 2 if unicodedata.east_asian_width(chr(c)) in "WF" else 1


ranges, c = [], 0xA0
while c <= sys.maxunicode:
    first, n = c, columns(c)
    while c <= sys.maxunicode and columns(c) in (n, None):
        last, c = (c, c + 1) if columns(c) is not None else (last, c + 1)
    if n != 1:
        ranges.append((first, last, n))
print(f"""/* Made by tools/width_table.py with Unicode {unicodedata.unidata_version}: characters of no and of two columns,
 * in order. */
#ifndef WEFT_BASE_WIDTH_TABLE_H
#define WEFT_BASE_WIDTH_TABLE_H

/* clang-format off */
static const struct {{ uint32_t first, last; int columns; }} width_ranges[] = {{""")
for i in range(0, len(ranges), 4):
    print("    " + " ".join(f"{{0x{a:x}, 0x{b:x}, {n}}}," for a, b, n in ranges[i:i + 4]))
print("""};
/* clang-format on */

#endif""")
