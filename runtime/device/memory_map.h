/* runtime/device/memory_map.h: how the memory that a pool has of its device is divided into
   blocks, for lt.cuda.memory_snapshot. */
#ifndef LT_DEVICE_MEMORY_MAP_H
#define LT_DEVICE_MEMORY_MAP_H

#include "device/device.h"

/* LT_MEMORY_SEGMENT: a row about a segment alone, its block has no bytes. LT_MEMORY_PENDING: free,
   but work on several streams is not done with it. */
typedef enum lt_memory_use {
  LT_MEMORY_SEGMENT,
  LT_MEMORY_FREE,
  LT_MEMORY_PENDING,
  LT_MEMORY_USED
} lt_memory_use;

/* A block, and the segment of the device's memory that it was cut from. */
typedef struct lt_memory_row {
  const char *segment, *data;
  size_t segment_bytes, bytes;
  bool is_arena; /* a segment of blocks under 1 MiB */
  lt_memory_use use;
  const lt_stream *stream; /* of the last work on it; NULL: none */
  lt_live tensor;          /* of a block in use: what it is for, and how many bytes of it */
} lt_memory_row;

/* Up to n rows, in no order; returns how many there are. What is in use and was not noted
   (lt_device_note_all) is missing: memory of a segment that no row has is in use. */
int64_t lt_device_memory_map(lt_ctx *c, lt_device d, lt_memory_row *out, int64_t n);

#endif
