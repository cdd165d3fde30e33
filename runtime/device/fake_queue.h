/* runtime/device/fake_queue.h: the queues of the fake device: for its own files alone.

   All of it, and what its files keep beside it, is under one lock: specs have helper threads. */
#ifndef LT_DEVICE_FAKE_QUEUE_H
#define LT_DEVICE_FAKE_QUEUE_H

#include "device/fake.h"

enum { LT_FAKE_DEVICES = 4 };
static inline bool lt_fake_is_index(int index) { return index >= 0 && index < LT_FAKE_DEVICES; }

/* Work of a stream: one of a wait, a call, a copy, a reduction, a filling of freed memory. */
typedef struct lt_fake_task {
  struct lt_fake_task *next;
  void (*run)(lt_ctx *c, struct lt_fake_task *t); /* NULL: wait for `after` */
  lt_event after;
  bool ends; /* recorded: the end of a storage, for which nobody waits */
  int index;
  /* Who issued it. */
  lt_ctx *root;
  const char *op;
  uint32_t line;
  /* A call, with copies of all that it points to: nothing is retained, as on a GPU. */
  lt_kernel kernel;
  lt_call call;
  void *copies;
  /* Bytes; a staged source is in `copies`. */
  void *dst;
  const void *a, *b;
  size_t bytes;
  /* Of a reduction. */
  int64_t n;
  lt_dtype dtype;
  lt_comm_reduce reduce;
  double by;
} lt_fake_task;

struct lt_stream {
  int index;
  lt_fake_task *first, *last;
  uint64_t issued, done;
  int64_t working; /* of those that have not run: all but ends of storages */
  int asked; /* by who polls */
};

/* A kernel that runs out of memory comes back in here: it finds nothing to wait for. */
void lt_fake_enter(void);
bool lt_fake_leave(bool result); /* the same */
bool lt_fake_in_kernel(void);

/* What lt_fake_count gives, but for `pending`; to be changed between these two. */
extern lt_fake_counts lt_fake_counted;

/* A task of what the ctx does now, to be filled in; NULL with a failure. */
lt_fake_task *lt_fake_task_new(lt_ctx *c, lt_stream *s, void (*run)(lt_ctx *c, lt_fake_task *t));
bool lt_fake_append(lt_stream *s, lt_fake_task *t); /* always true */
void lt_fake_wait_for(lt_ctx *c, lt_event event);

/* Runs a kernel, in which lt_fake_in_kernel is true. */
void lt_fake_run_kernel(lt_ctx *c, const lt_fake_task *t);

/* Whether the device records (LT_FAKE_RECORDS=1), and then its one stream, NULL: not used yet. */
bool lt_fake_records(void);
lt_stream *lt_fake_only_stream(int index);
/* Its memory (fake_recorder.c), with the lock; the values at an address of it, or the address
   itself. */
void *lt_fake_record_alloc(size_t bytes);
void lt_fake_record_free(int index, void *address);
void *lt_fake_values(const void *address);

/* Members of the device's table: streams and events (fake_queue.c), */
lt_stream *lt_fake_stream_new(lt_ctx *c, int index, int priority);
bool lt_fake_event_record(lt_ctx *c, lt_stream *s, lt_event *out);
lt_progress lt_fake_event_done(lt_event event);
bool lt_fake_submit(lt_ctx *c, lt_event event);
bool lt_fake_event_wait(lt_ctx *c, lt_event event);
bool lt_fake_batch_end(lt_ctx *c, int index);
bool lt_fake_stream_wait(lt_ctx *c, lt_stream *s, lt_event event);
bool lt_fake_synchronize(lt_ctx *c, int index);

/* memory (fake_memory.c), */
void *lt_fake_alloc(int index, size_t bytes);
void lt_fake_free(int index, void *ptr, size_t bytes);
void *lt_fake_host_alloc(size_t bytes);
void lt_fake_host_free(void *memory, size_t bytes);
bool lt_fake_memory_info(int index, int64_t *free_bytes, int64_t *total);
bool lt_fake_is_pinned(const void *memory);

/* and what is issued (fake_work.c). */
bool lt_fake_launch(lt_ctx *c, int index, lt_stream *s, lt_kernel kernel, const lt_call *call);
bool lt_fake_copy(lt_ctx *c, lt_stream *s, lt_copy way, int index, void *dst, int from,
                  const void *src, size_t bytes, lt_dtype dtype);
bool lt_fake_take_error(lt_ctx *c, int index, lt_device_error *out);
bool lt_fake_combine(lt_ctx *c, int index, lt_stream *s, void *dst, const void *a, const void *b,
                     int64_t n, lt_dtype dtype, lt_comm_reduce reduce);
bool lt_fake_divide(lt_ctx *c, int index, lt_stream *s, void *data, int64_t n, lt_dtype dtype,
                    int by);
bool lt_fake_scale(lt_ctx *c, int index, lt_stream *s, void *data, int64_t n, lt_dtype dtype,
                   double by);

#endif
