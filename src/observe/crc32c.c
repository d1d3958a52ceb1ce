/* CRC-32C (Castagnoli polynomial 0x1EDC6F41, reflected; RFC 3720 appendix B.4), one byte at a time
 * through a table of 256 words that is filled at the first use. Not thread-safe. */
#include "observer.h"

static const uint32_t polynomial = 0x82F63B78u;

static uint32_t table[256];

static void table_fill(void)
{
    for (uint32_t byte = 0; byte < 256; ++byte) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ polynomial : crc >> 1;
        table[byte] = crc;
    }
}

uint32_t crc32c(const void *data, size_t bytes)
{
    if (!table[1]) table_fill();
    const unsigned char *p = data;
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < bytes; ++i) crc = crc >> 8 ^ table[(crc ^ p[i]) & 255];
    return ~crc;
}
