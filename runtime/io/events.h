/* runtime/io/events.h: records of event files, which TensorBoard reads: TFRecord, of TensorFlow.
 */
#ifndef LT_IO_EVENTS_H
#define LT_IO_EVENTS_H

#include <stddef.h>
#include <stdint.h>

enum { LT_RECORD_HEAD = 12, LT_RECORD_TAIL = 4 };

/* CRC-32C (Castagnoli, RFC 3720) of n bytes. */
uint32_t lt_crc32c(const void *data, size_t n);

/* What stands before n bytes of data in a record: their number and its checksum; and after them:
   their checksum. Little-endian, as the format is. */
void lt_record_head(size_t n, unsigned char head[LT_RECORD_HEAD]);
void lt_record_tail(const void *data, size_t n, unsigned char tail[LT_RECORD_TAIL]);

#endif
