/* runtime/xla/storage.h: storages of the device: addresses without memory, each with a value.

   A storage is a flat value: a leaf, which is a buffer of the device, or a value of the graph that
   is being recorded. Functions are called with the graph's lock. */
#ifndef LT_XLA_STORAGE_H
#define LT_XLA_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ltrain/backend.h"
#include "xla/pjrt.h"

enum { LT_PARTITIONS = 16 }; /* at most */
/* Buffers of so many bytes, whose copies cost nothing, are treated as those of all steps. */
enum { LT_SMALL_LEAF = 1024 };

/* A value, of a storage and of the graph that reads it: a buffer on each of the plugin's devices
   that the device stands for. */
typedef struct lt_leaf {
  int users, n;
  pjrt_device *first; /* the device of the first */
  bool sharded; /* each has one of n equal parts, in order; else all of it */
  pjrt_buffer *buffers[LT_PARTITIONS];
} lt_leaf;

lt_leaf *lt_leaf_retain(lt_leaf *l);
void lt_leaf_release(lt_leaf *l);

typedef struct lt_slot {
  lt_leaf *leaf;  /* NULL: none, or `value` has replaced it */
  int value;      /* of the graph; -1: not in it */
  int type;       /* -1: not known before the first write */
  size_t bytes;   /* 0: free */
  bool listed;    /* in the graph's list */
  bool lost;      /* its program failed */
  bool sharded;   /* what is written to it is a sharded leaf, where it can be divided */
  int64_t next;   /* of the free ones */
} lt_slot;

void *lt_slot_alloc(size_t bytes); /* NULL: out of memory */
void lt_slot_free(void *address);
/* The storage that has an address, and how many bytes from its begin; NULL: none. */
lt_slot *lt_slot_at(const void *address, size_t *offset);
/* Leaves of all storages get to the devices of today, where they are on others. */
bool lt_slots_spread(lt_ctx *c);

#endif
