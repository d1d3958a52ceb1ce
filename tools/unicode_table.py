#!/usr/bin/env python3
"""Writes src/data/tokens/unicode_table.h: which characters are letters (L), numbers (N) and white space for tiktoken's patterns, so that weft
splits a text into the same words. tiktoken encodes only what a pattern matches: encoding all characters with \\s, \\p{L} or \\p{N} returns its set.
usage: unicode_table.py >src/data/tokens/unicode_table.h     (needs tiktoken)"""
import sys, tiktoken

ALL = "".join(chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c <= 0xDFFF)


def matched(pattern):
    one = tiktoken.Encoding("bytes", pat_str=pattern, mergeable_ranks={bytes([b]): b for b in range(256)}, special_tokens={})
    return set(bytes(one.encode_ordinary(ALL)).decode())


kinds = [None] * (sys.maxunicode + 1)
for name, pattern in (("SPACE", r"\s"), ("LETTER", r"\p{L}"), ("NUMBER", r"\p{N}")):
    for c in matched(pattern):
        kinds[ord(c)] = name
ranges, c = [], 0
while c < len(kinds):
    k, first = kinds[c], c
    while c < len(kinds) and kinds[c] == k:
        c += 1
    if k:
        ranges.append((first, c - 1, k))
print(f"""/* Made by tools/unicode_table.py with tiktoken {tiktoken.__version__}: ranges of letters (L), numbers (N) and
 * white space, sorted by code point. */
#ifndef WEFT_DATA_UNICODE_TABLE_H
#define WEFT_DATA_UNICODE_TABLE_H

/* clang-format off */
static const struct {{ uint32_t first, last; CharKind kind; }} unicode_ranges[] = {{""")
for i in range(0, len(ranges), 2):
    print("    " + " ".join("{0x%x, 0x%x, CHAR_%s}," % r for r in ranges[i : i + 2]))
print("};\n/* clang-format on */\n\n#endif")
