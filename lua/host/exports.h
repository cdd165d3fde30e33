/* lua/host/exports.h: memory of a state that other libraries use, through DLPack.

   Each counts as a user of the struct `ltrain`, and with it of the host's allocator, which
   therefore outlive ltrain_close. Any thread may give one back. */
#ifndef LT_HOST_EXPORTS_H
#define LT_HOST_EXPORTS_H

#include <pthread.h>

#include "ltrain/dlpack.h"
#include "tensor/tensor.h"

typedef struct lt_export lt_export;
struct lt_export {
  union {
    DLManagedTensor unversioned;
    DLManagedTensorVersioned versioned;
  } managed;
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS];
  struct ltrain *l;
  lt_storage *storage;
  lt_export *next; /* of those that were given back */
};

typedef struct lt_exports {
  pthread_mutex_t lock;
  long users; /* the state while it is open, and exports; under the lock, as all that follows */
  bool open, releasing;
  lt_export *returned;
  lt_ctx *heir; /* frees what outlives the state; made with the first export */
} lt_exports;

/* Of a struct that was just allocated. */
void lt_exports_begin(lt_exports *e);

/* An export of the storage, retained; NULL with a failure. */
lt_export *lt_export_new(struct ltrain *l, lt_storage *s);

/* Nobody holds it any more. Its memory is given back by the state's next call, or here if the
   state has been closed. */
void lt_export_drop(lt_export *one);

/* Give back the memory of all that were dropped. */
void lt_exports_release(struct ltrain *l);

/* The state has been closed: the last user frees the struct. */
void lt_exports_end(struct ltrain *l);

#endif
