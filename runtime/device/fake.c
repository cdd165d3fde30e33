/* runtime/device/fake.c: an asynchronous, counting device kind over host memory, for specs.

   Whatever forgets to order itself after the work that made its input, or hands out memory that
   queued work still uses, reads garbage, and specs see it without a GPU. */
#include "device/fake.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/fake_queue.h"

static int count(void) { return LT_FAKE_DEVICES; }

static void *stream_native(lt_stream *s) { return s; }

/* LT_FAKE_FORKS=0: as GPUs, it is lost to a child of a process that has used it. */
static bool survives_forks(void) {
  static const char name[] = "LT_FAKE_FORKS"; /* for specs alone: no page names it */
  const char *text = getenv(name);
  return text == NULL || strcmp(text, "0") != 0;
}

/* What ltrain should not have let through. */
static bool is_lost(lt_ctx *c) {
  static pid_t owner;
  if (owner == 0) owner = getpid();
  if (owner == getpid() || survives_forks()) return false;
  return !lt_fail(c, LT_EDEVICE, "fake: another process's");
}

static bool open_device(lt_ctx *c, int index) {
  if (!lt_fake_is_index(index)) return lt_fail(c, LT_EDEVICE, "fake: there is no device %d", index);
  lt_fake_enter();
  return lt_fake_leave(!is_lost(c));
}

const lt_device_ops *lt_fake_ops(const lt_device_ops *cpu) {
  static lt_device_ops ops;
  ops = (lt_device_ops){.size = sizeof ops,
                        .version = LT_BACKEND_VERSION,
                        .name = "fake",
                        .for_specs = true,
                        .op_hash = cpu->op_hash,
                        .forks = survives_forks(),
                        .kernels = cpu->kernels,
                        .count = count,
                        .open = open_device,
                        .layout = cpu->layout,
                        .whole_storages = lt_fake_records(),
                        .alloc = lt_fake_alloc,
                        .free = lt_fake_free,
                        .memory_info = lt_fake_memory_info,
                        .host_alloc = lt_fake_host_alloc,
                        .host_free = lt_fake_host_free,
                        .stream_new = lt_fake_stream_new,
                        .stream_native = stream_native,
                        .event_record = lt_fake_event_record,
                        .event_done = lt_fake_event_done,
                        .submit = lt_fake_records() ? lt_fake_submit : NULL,
                        .event_wait = lt_fake_event_wait,
                        .stream_wait = lt_fake_stream_wait,
                        .synchronize = lt_fake_synchronize,
                        .copy = lt_fake_copy,
                        .launch = lt_fake_launch,
                        .batch_end = lt_fake_records() ? lt_fake_batch_end : NULL,
                        .take_error = lt_fake_take_error,
                        .combine = lt_fake_combine,
                        .divide = lt_fake_divide,
                        .scale = lt_fake_scale};
  return &ops;
}
