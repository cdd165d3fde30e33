/* runtime/io/snapshot_slot.h: slots for snapshots of a run: memory files (memfd) that a launcher
   makes and its ranks inherit, so that they outlive the ranks.

   A slot has a page with a header, then the bytes of a safetensors file. The header is written
   last, and is not there while the bytes change: what a process that is killed leaves behind is
   recognized. Reads and writes by pread and pwrite: a machine without memory for it is a failure
   (ENOSPC) here, where a mapping would end the process by a signal. */
#ifndef LT_IO_SNAPSHOT_SLOT_H
#define LT_IO_SNAPSHOT_SLOT_H

#include "io/safetensors.h"

/* What a header says: which fit of the script, the round of the launcher's ranks that wrote it, the
   number of the snapshot within the fit, the optimizer step, which part of how many (0 of 1: all of
   the state), and the bytes of the file. */
enum {
  LT_SLOT_FIT,
  LT_SLOT_ROUND,
  LT_SLOT_SERIAL,
  LT_SLOT_STEP,
  LT_SLOT_PART,
  LT_SLOT_PARTS,
  LT_SLOT_BYTES,
  LT_SLOT_NUMBERS
};

typedef struct lt_slot_header {
  uint64_t number[LT_SLOT_NUMBERS];
  uint64_t hash; /* of the bytes: lt_slot_hash */
} lt_slot_header;

enum { LT_SLOT_START = 4096 }; /* where the bytes begin */

/* A descriptor of a new, empty slot, closed in programs that are run; -1 with a failure. */
int lt_slot_new(lt_ctx *c);

/* The header of a slot; false when it has none: empty, or not completely written. */
bool lt_slot_read(int fd, lt_slot_header *out);

/* The hash of the bytes, or of several readers' shares of them a summand: those of all shares, 0 to
   shares - 1, add up to it, modulo 2^64. False where they cannot be read; no failure. */
bool lt_slot_hash(lt_ctx *c, int fd, const lt_slot_header *header, uint64_t share, uint64_t shares,
                  uint64_t *out);

/* All bytes of a slot as u8 [n], the open frame's; NULL with a failure. */
lt_tensor *lt_slot_bytes(lt_ctx *c, int fd, const lt_slot_header *header);

/* Write such bytes, with the header that they had. */
bool lt_slot_put(lt_ctx *c, int fd, const lt_slot_header *header, const void *bytes);

/* A save that a helper thread completes. Tensors on the host are in the slot when begin returns;
   those of a device are copied behind the work that was issued. The numbers but LT_SLOT_BYTES, and
   no hash, are the caller's. `dense` as of lt_safetensors_save. NULL with a failure. */
typedef struct lt_slot_save lt_slot_save;
lt_slot_save *lt_slot_save_begin(lt_ctx *c, int fd, const lt_slot_header *header, int64_t n,
                                 const lt_named_tensor *tensors, int64_t n_metadata,
                                 lt_metadata *metadata,
                                 lt_tensor *(*dense)(lt_ctx *c, lt_tensor *t));

/* Whether lt_slot_save_end would not wait. */
bool lt_slot_save_done(lt_slot_save *l);

/* Wait for it and free it; false with a failure of the thread: the slot has no header then. */
bool lt_slot_save_end(lt_ctx *c, lt_slot_save *l);

#endif
