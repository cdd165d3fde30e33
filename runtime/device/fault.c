/* runtime/device/fault.c: faults of a device: which operations were in flight.

   Work runs long after its operation was called, and a device does not say which of it failed. So
   the last operations are kept, each with its line, as far as that is known for nothing: looking it
   up in the script's stack costs more than issuing does. Of the others it is known what came
   next. */
#include <stdio.h>

#include "base/script_lines.h"
#include "device/ctx_devices.h"

enum { LIST = 2048 };

/* The latest first. */
static void list_issued(lt_ctx *c, const lt_device_state *st, int index, char *out, size_t size) {
  uint64_t n = st->n_issued < LT_ISSUED ? st->n_issued : LT_ISSUED;
  size_t at = 0;
  out[0] = 0;
  char next[128] = "";
  uint32_t running = lt_ctx_line(c); /* which is given to what the call has issued */
  if (running != 0) lt_line_text(c, running, next, sizeof next);
  for (uint64_t k = 1; k <= n && at < size; k++) {
    const lt_issued *i = &st->issued[(st->n_issued - k) % LT_ISSUED];
    if (i->device.index != index || lt_device_kinds[i->device.kind]->launch == NULL) continue;
    bool is_known = i->line != 0 && i->line != LT_LINE_LATER;
    if (is_known) lt_line_text(c, i->line, next, sizeof next);
    at += (size_t)snprintf(out + at, size - at, "\n  %-24s %s%s", c->registry->op_name(i->op),
                           is_known ? "" : next[0] != 0 ? "before " : "(line not kept)", next);
  }
}

bool lt_fail_fault(lt_ctx *c, int index, const char *text) {
  lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  char list[LIST] = "";
  if (st != NULL) st->faulted = true;
  if (!lt_ok(c)) return false;
  if (st != NULL && st->waits)
    return lt_fail(c, LT_EDEVICE, "%s%s%s", lt_op_name(c), lt_op_colon(c), text);
  if (st != NULL) list_issued(c, st, index, list, sizeof list);
  if (list[0] == 0) return lt_fail(c, LT_EDEVICE, "%s", text);
  return lt_fail(c, LT_EDEVICE,
                 "%s\nwhat was issued to it last, the latest first (LTRAIN_CUDA_SYNC=1 finds the "
                 "one that failed):%s",
                 text, list);
}

bool lt_device_faulted(const lt_ctx *c) {
  const lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  return st != NULL && st->faulted;
}

bool lt_launch_settle(lt_ctx *c, lt_device d) {
  const lt_device_state *st = c->slot[LT_SLOT_DEVICE];
  return !st->waits || lt_device_synchronize(c, d);
}
