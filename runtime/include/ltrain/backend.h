/* ltrain/backend.h: tables of functions that a device implements, and how a backend that is a
   shared object of its own gives its tables to ltrain. */
#ifndef LT_INCLUDE_BACKEND_H
#define LT_INCLUDE_BACKEND_H

#include "ltrain/comm.h"
#include "ltrain/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { LT_BACKEND_VERSION = 1 };

/* One call of an op: what a kernel gets. `args` is the plain struct of the op's kind. Outputs are
   allocated with their final shape and dtype; a NULL input is an absent optional one. */
typedef struct lt_call {
  int op;
  int n_in, n_out;
  lt_tensor *const *in;
  lt_tensor *const *out;
  const void *args;
  size_t args_size;
} lt_call;

/* Runs a call, or issues it on the ctx's current stream. False with a failure in the ctx. */
typedef bool (*lt_kernel)(lt_ctx *c, const lt_call *call);

/* A device kind. Optional members are NULL. */
typedef struct lt_device_ops {
  uint32_t size;       /* sizeof(lt_device_ops) */
  uint32_t version;    /* LT_BACKEND_VERSION */
  const char *name;    /* "cpu" */
  uint64_t op_hash;    /* hash of the op rows it was built with */
  bool for_specs;      /* not shown to users */
  bool host_memory;    /* the host may read and write its bytes once synchronised */
  const lt_kernel *kernels; /* by op id; NULL: not on this device */

  int (*count)(void);
  /* Why count is 0, in a sentence. (optional) */
  const char *(*why_not)(void);
  /* Per-ctx state, e.g. thread pools or libraries' handles. (optional) */
  bool (*open)(lt_ctx *c);
  void *(*alloc)(int index, size_t bytes);
  void (*free)(int index, void *ptr, size_t bytes);

  /* Copies on the current stream; `to_host`/`from_host` return when the bytes are there. */
  bool (*copy)(lt_ctx *c, int index, void *dst, const void *src, size_t bytes);
  bool (*to_host)(lt_ctx *c, int index, void *dst, const void *src, size_t bytes);
  bool (*from_host)(lt_ctx *c, int index, void *dst, const void *src, size_t bytes);

  /* Asynchronous devices (all optional together). An event is a position in a stream. */
  bool (*launch)(lt_ctx *c, lt_kernel kernel, const lt_call *call);
  int (*stream_new)(lt_ctx *c, int index);
  uint64_t (*event_record)(lt_ctx *c, int index, int stream);
  bool (*event_done)(int index, int stream, uint64_t event);
  bool (*stream_wait)(lt_ctx *c, int index, int stream, int other, uint64_t event);
  bool (*synchronize)(lt_ctx *c, int index);

  /* For reductions between ranks: dst = a (reduce) b, where dst may be a or b; data /= by and
     data *= by, for floating types. Memory of the device, work done when they return. (optional) */
  void (*combine)(void *dst, const void *a, const void *b, int64_t n, lt_dtype dtype,
                  lt_comm_reduce reduce);
  void (*divide)(void *data, int64_t n, lt_dtype dtype, int by);
  void (*scale)(void *data, int64_t n, lt_dtype dtype, double by);
} lt_device_ops;

/* What ltrain offers a backend that it opened. Grows at its end: `size` says how far it goes. */
typedef struct lt_host {
  uint32_t size, version;   /* sizeof(lt_host), LT_BACKEND_VERSION */
  const char *ltrain;       /* "0.1.0" */
  uint64_t op_hash;         /* of the op rows of this ltrain */
  const lt_comm_host *comm; /* for backends of collectives; also given to lt_comm_ops.open */
  /* For functions that got a ctx, during that call alone. */
  bool (*fail)(lt_ctx *c, lt_code code, const char *text); /* always false */
  void (*log)(lt_ctx *c, const char *text);
} lt_host;

enum { LT_BACKEND_TEXT = 256 };

/* What a backend says of itself. Everything it points to lives as long as the process. */
typedef struct lt_backend {
  uint32_t size, version;  /* set by ltrain before; the backend sets the version it was built for */
  uint64_t op_hash;        /* of the op rows it was built with; 0: it has no kernels */
  const char *about;       /* "Open MPI 4.1.4", for `ltrain info` */
  const lt_comm_ops *comm; /* its collectives, or NULL */
  char text[LT_BACKEND_TEXT]; /* why it could not, in a sentence */
} lt_backend;

/* The one symbol of a backend's shared object; called once a process. It links nothing of ltrain,
   never longjmps and keeps no ctx. False: `text` says why. */
LT_API bool lt_backend_open(const lt_host *host, lt_backend *out);

#ifdef __cplusplus
}
#endif
#endif
