/* runtime/io/events.c: writes TFRecord files: length, its checksum, data, its checksum.

   TensorFlow's file of records, which TensorBoard reads. The checksum is CRC-32C (G. Castagnoli and
   others, 1993), four bits at a time: a table of 64 bytes, fast enough for some records a
   second. */
#include "io/events.h"

uint32_t lt_crc32c(const void *data, size_t n) {
  static const uint32_t table[16] = {/* of four bits each, polynomial 0x82f63b78 */
                                     0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
                                     0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                     0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                     0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
  const unsigned char *bytes = data;
  uint32_t crc = 0xffffffff;
  for (size_t k = 0; k < n; k++) {
    crc ^= bytes[k];
    crc = crc >> 4 ^ table[crc & 15];
    crc = crc >> 4 ^ table[crc & 15];
  }
  return ~crc;
}

static void put(uint64_t value, int bytes, unsigned char *out) {
  for (int k = 0; k < bytes; k++) out[k] = (unsigned char)(value >> 8 * k & 0xff);
}

/* Rotated and added to: a CRC of data that holds CRCs would be weak. The rotation and the constant
   are TFRecord's. */
static uint32_t masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

void lt_record_head(size_t n, unsigned char head[LT_RECORD_HEAD]) {
  put(n, 8, head);
  put(masked(lt_crc32c(head, 8)), 4, head + 8);
}

void lt_record_tail(const void *data, size_t n, unsigned char tail[LT_RECORD_TAIL]) {
  put(masked(lt_crc32c(data, n)), 4, tail);
}
