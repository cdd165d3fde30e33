/* ltrain/backend.h: tables of functions that a device implements, and how a backend that is a
   shared object of its own gives its tables to ltrain. */
#ifndef LT_INCLUDE_BACKEND_H
#define LT_INCLUDE_BACKEND_H

#include "ltrain/args.h"
#include "ltrain/comm.h"
#include "ltrain/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { LT_BACKEND_VERSION = 3 };

/* One call of an op, the argument of a kernel. `args` is the plain struct of the op's kind, of
   which lt_host.argument knows the fields by name. Outputs are allocated with their final shape and
   dtype; a NULL input is an absent optional one. */
typedef struct lt_call {
  int op;
  int n_in, n_out;
  lt_tensor *const *in;
  lt_tensor *const *out;
  const void *args;
  size_t args_size;
} lt_call;

/* Runs a call or, on an asynchronous device, issues it on the stream that lt_host.stream names: it
   is called within `launch`. False with a failure in the ctx. */
typedef bool (*lt_kernel)(lt_ctx *c, const lt_call *call);

/* A tensor as a kernel sees it: address, dtype, shape and strides, in elements. */
typedef struct lt_view {
  void *data; /* device address of the first element */
  lt_dtype dtype;
  int ndim;
  int64_t size[LT_MAX_DIMS], stride[LT_MAX_DIMS];
} lt_view;

/* Where a tensor is in its storage. */
typedef struct lt_storage_place {
  void *base;     /* address of the storage: with `whole_storages` what `alloc` returned */
  size_t bytes;   /* of the storage */
  int64_t offset; /* of the tensor's first element, in elements */
} lt_storage_place;

/* Direction of a copy; LT_PEER: between two devices of one kind. */
typedef enum lt_copy { LT_TO_DEVICE, LT_TO_HOST, LT_WITHIN, LT_PEER } lt_copy;

/* Memory format of an op's results: channels last, [N, C, ..] with C innermost, or row-major. */
typedef enum lt_layout { LT_ROW_MAJOR, LT_CHANNELS_LAST } lt_layout;

/* What devices may round the factors of f32 products to: nothing; TF32 (11 bits); bf16 (8 bits),
   and TF32 where it has no such products. Sums stay in f32. */
typedef enum lt_matmul_precision {
  LT_MATMUL_HIGHEST, LT_MATMUL_HIGH, LT_MATMUL_MEDIUM
} lt_matmul_precision;

/* The error word of a device: the first value that a kernel found invalid, of which op, issued by
   which script line. `value` is an integer, or the bits of a double for ops on floats; `limit` its
   exclusive upper bound, as the op defines it. */
typedef struct lt_device_error {
  int op;
  uint32_t line;
  int64_t value, limit;
} lt_device_error;

/* A type of device ("cpu", "cuda"). Optional members are NULL. Functions with a ctx return false,
   or NULL, with a failure in it. `index` is the number of the device. */
typedef struct lt_device_ops {
  uint32_t size;       /* sizeof(lt_device_ops) */
  uint32_t version;    /* LT_BACKEND_VERSION */
  const char *name;    /* "cpu" */
  const char *alias;   /* another name for users, e.g. of a class of devices (optional) */
  uint64_t op_hash;    /* hash of the op rows it was built with */
  bool for_specs;      /* not shown to users */
  bool host_memory;    /* the host may access its memory directly, after synchronizing */
  bool forks;          /* usable in a child forked from a process that has used it */
  bool no_data;        /* its tensors have no data: results are inferred, no kernel is called */
  /* For asynchronous devices that record work and run it as a whole. Each storage is an allocation
     of its own: `alloc` when it is made, `free` at its end, from any thread and perhaps before work
     that was issued on it has run, which still needs its value. Nothing is cached, no memory is
     used again between the two. Addresses only name storages and the elements in them: the host
     never reads them, and the caller of `lt_storage_wrap` cannot bring memory of its own. Such a
     device has read the source of LT_TO_DEVICE, pinned or not, when `copy` returns. */
  bool whole_storages;
  const char *link;    /* the backend whose link moves its memory between ranks: opened, where it is
                          there, when ranks first use the device (optional) */
  const lt_kernel *kernels; /* by op id; NULL: not on this device */

  /* Number of devices (those from LT_MAX_DEVICES on are never used), and whether they can be used;
     if not, `why` receives the reason. These two initialise nothing. */
  int (*count)(void);
  bool (*available)(char *why, size_t size); /* (optional) */
  /* Before the first use of the device by a ctx. (optional) */
  bool (*open)(lt_ctx *c, int index);
  /* Whether the kernel of an op takes this dtype: that of out[0], else in[0]. (optional: where
     there is a kernel) */
  bool (*supports)(int op, lt_dtype dtype);
  /* (optional: LT_ROW_MAJOR) */
  lt_layout (*layout)(int op, lt_dtype dtype);

  void *(*alloc)(int index, size_t bytes); /* NULL: out of memory */
  void (*free)(int index, void *ptr, size_t bytes);
  bool (*memory_info)(int index, int64_t *free_bytes, int64_t *total); /* (optional) */
  /* What the devices have done, for `lt.xla.report`: a JSON object as text that ends with 0;
     returns its length, which may be `size` or more, as snprintf does. (optional) */
  size_t (*report)(char *text, size_t size);
  /* Name of the device, e.g. "NVIDIA H100 80GB HBM3". (optional) */
  bool (*describe)(int index, char *text, size_t size);
  /* Pinned host memory, for asynchronous copies. (optional together) */
  void *(*host_alloc)(size_t bytes);
  void (*host_free)(void *ptr, size_t bytes);

  /* Asynchronous devices: all of these down to `launch` but `submit`, and no others. A stream is
     created when there is none to reuse; `priority` 1 is for streams that must not queue behind the
     others. A device that runs all of its work in the order of issue may return one stream always.
   */
  lt_stream *(*stream_new)(lt_ctx *c, int index, int priority);
  void *(*stream_native)(lt_stream *stream); /* e.g. the cudaStream_t */
  /* The current position of the stream. Called after each launch: costly work may be deferred until
     the event is queried, when it may denote a later position. */
  bool (*event_record)(lt_ctx *c, lt_stream *stream, lt_event *out);
  /* Whether the event has passed; from any thread. It starts nothing: before the host polls until
     an event has passed, `submit` is called. */
  lt_progress (*event_done)(lt_event event);
  /* From any thread: all work up to the event is given to the device, as the host is about to poll
     until it has passed. (optional: work is given to the device when it is issued) */
  bool (*submit)(lt_ctx *c, lt_event event);
  bool (*event_wait)(lt_ctx *c, lt_event event); /* the host waits */
  /* Work issued on `stream` after this call runs after the event, which may be of another device of
     this kind. */
  bool (*stream_wait)(lt_ctx *c, lt_stream *stream, lt_event event);
  bool (*synchronize)(lt_ctx *c, int index); /* the host waits for all streams of the device */
  /* Asynchronous, except LT_TO_HOST into memory that is not of host_alloc, which waits; a source of
     the host that is not, also one that others have pinned, is copied to a staging buffer before it
     returns: its owner may write to it then. `stream` is of device `index`, which is dst's (for
     LT_TO_HOST src's); `from` is the device of src for LT_PEER. The bytes are elements of `dtype`,
     of which both addresses are multiples (LT_U8: of no known type). */
  bool (*copy)(lt_ctx *c, lt_stream *stream, lt_copy way, int index, void *dst, int from,
               const void *src, size_t bytes, lt_dtype dtype);
  /* Issue the kernel's work on the stream. NULL: a synchronous device, whose kernels just run. */
  bool (*launch)(lt_ctx *c, int index, lt_stream *stream, lt_kernel kernel, const lt_call *call);
  /* The end of a batch, when tensors of the batch that nothing needs any more are gone: of each
     batch of a loop, and of a script without a Trainer after an optimizer's step. Devices that
     record run here what was recorded. (optional) */
  bool (*batch_end)(lt_ctx *c, int index);
  /* Reads and clears the error word of work that this ctx's root has issued; false: it is empty.
     Called after a host wait. (optional) */
  bool (*take_error)(lt_ctx *c, int index, lt_device_error *out);

  /* For reductions between ranks: dst = a (reduce) b, where dst may be a or b; data /= by and
     data *= by, for floating types. Contiguous memory of the device; issued on the stream (NULL
     on a synchronous device, where the work is done when they return). (optional) */
  bool (*combine)(lt_ctx *c, int index, lt_stream *stream, void *dst, const void *a, const void *b,
                  int64_t n, lt_dtype dtype, lt_comm_reduce reduce);
  bool (*divide)(lt_ctx *c, int index, lt_stream *stream, void *data, int64_t n, lt_dtype dtype,
                 int by);
  bool (*scale)(lt_ctx *c, int index, lt_stream *stream, void *data, int64_t n, lt_dtype dtype,
                double by);

  /* For timing (optional together). A timer records the time at which its stream reaches it; the
     first record creates it, when `*timer` is NULL. LT_PENDING: one is not reached yet. */
  bool (*timer_record)(lt_ctx *c, lt_stream *stream, void **timer);
  lt_progress (*timer_elapsed)(void *from, void *to, double *milliseconds);
  void (*timer_free)(void *timer);
  /* Names for the timeline of a profiler, where one is attached, of the calling thread: ranges,
     which nest, and marks. (optional together) */
  void (*range_push)(const char *name);
  void (*range_pop)(void);
  void (*mark)(const char *name);
  /* Its PCI address as in /sys/bus/pci/devices, e.g. "0000:65:00.0": ranks run on the cores of
     the NUMA node of their device. (optional) */
  bool (*bus_address)(int index, char *text, size_t size);

  /* Of a backend whose device may stand for several of the library's, which share the work of each
     program (optional together). `partition`: from now on it stands for *n of them from number
     `first` on, or for all where *n is 0, which *n receives. `shard`: values of the storage at
     `base` are divided among them, in equal parts along the storage, where that is possible. */
  bool (*partition)(lt_ctx *c, int index, int first, int *n);
  bool (*shard)(lt_ctx *c, int index, void *base);

  /* Whether the device has a narrower dtype in place of this one: scripts are refused tensors of
     it; the library's own, such as sums in f64, have fewer digits there. (optional) */
  bool (*lacks)(lt_dtype dtype);

  /* Graphs (optional together). What is issued on the stream after `capture_begin` is recorded and
     not run; `capture_end` returns it as a graph (NULL with a failure; without one, where it is not
     to be kept), and `graph_launch` issues all of it at once, as it was recorded. `graph_update`:
     from the next launch on, launch number `number` of the capture, counted from 0, is done with
     the arguments of `call`, which has the same tensors and no other. */
  bool (*capture_begin)(lt_ctx *c, lt_stream *stream);
  void *(*capture_end)(lt_ctx *c, lt_stream *stream, bool keep);
  bool (*graph_launch)(lt_ctx *c, lt_stream *stream, void *graph);
  bool (*graph_update)(lt_ctx *c, lt_stream *stream, void *graph, int64_t number, lt_kernel kernel,
                       const lt_call *call);
  void (*graph_free)(int index, void *graph);
} lt_device_ops;

/* Functions of ltrain for a backend. Versions are compared for equality. */
typedef struct lt_host {
  uint32_t size, version;   /* sizeof(lt_host), LT_BACKEND_VERSION */
  const char *ltrain;       /* "0.1.0" */
  uint64_t op_hash;         /* of the op rows of this ltrain */
  const lt_comm_host *comm; /* for backends of collectives; also passed to lt_comm_ops.open */
  /* For functions with a ctx argument, only during that call. */
  bool (*fail)(lt_ctx *c, lt_code code, const char *text); /* returns false */
  void (*log)(lt_ctx *c, const char *text);
  /* A warning to the user, by the thread that runs the script; its hook may call the device. */
  void (*warn)(lt_ctx *c, const char *text);
  bool (*view)(lt_ctx *c, lt_tensor *t, lt_view *out);
  void (*place)(const lt_tensor *t, lt_storage_place *out);
  /* `bytes` of the device that the running `launch` is for, 64-byte aligned, for what it issues on
     its stream: released by ltrain when `launch` returns, reused after that work has run. */
  void *(*scratch)(lt_ctx *c, size_t bytes);
  lt_stream *(*stream)(lt_ctx *c, lt_device d); /* the ctx's current one */
  uint32_t (*line)(lt_ctx *c);                  /* of the script, for lt_device_error */
  /* The same where it is known already, else 0: `line` walks the script's stack. */
  uint32_t (*known_line)(lt_ctx *c);
  /* "train.lua:12" of such a number; "" for 0. */
  void (*line_text)(lt_ctx *c, uint32_t line, char *text, size_t size);
  /* Ops by name: ids are below `n_ops`, -1: there is no such op. */
  int n_ops;
  int (*op)(const char *name);
  /* An argument of a call by its name, of a type of ltrain/args.h; NULL: no such argument. */
  const void *(*argument)(const lt_call *call, const char *name);
  /* All arguments of an op, in the order of its struct: its bytes between them are undefined. */
  const lt_arg *(*arguments)(int op, int *n);
  /* Within `launch`, for a call that the kernel does not support: runs the CPU's kernel on copies,
     synchronously. */
  bool (*run_on_cpu)(lt_ctx *c, const lt_call *call);
  const char *(*op_name)(int op);
  /* Whether the call writes its input `k`. */
  bool (*writes)(const lt_call *call, int k);
  /* The dtype in which an elementwise row of ops/unary.def or ops/binary.def is computed: f32 for
     f16 and bf16, i64 for integers. */
  lt_dtype (*computed_in)(const lt_call *call);
  /* How precise products of f32 must be (lt.set_float32_matmul_precision). */
  lt_matmul_precision (*matmul_precision)(lt_ctx *c);
  /* Reports an error after which device `index` cannot be used in this process; the operations
     issued last are added to the text. Returns false. */
  bool (*fault)(lt_ctx *c, int index, const char *text);
  /* Reports that device `index` of this name is out of memory; the largest tensors in use and the
     lines that made them are added to the text. Returns false. */
  bool (*exhausted)(lt_ctx *c, const char *name, int index, const char *text);
  /* The root of the ctx: contexts of one root share lines, and an error word a device. */
  const void *(*root)(lt_ctx *c);
} lt_host;

enum { LT_BACKEND_TEXT = 256 };

/* Description of a backend. Everything it points to must stay valid until the process ends. */
typedef struct lt_backend {
  uint32_t size, version;  /* set by ltrain; the backend sets the version it was built for */
  uint64_t op_hash;        /* of the op rows it was built with; 0: it asks for ops by name */
  const char *about;       /* "Open MPI 4.1.4", for `ltrain info` */
  const lt_comm_ops *comm; /* its collectives, or NULL */
  const lt_device_ops *device; /* its devices, or NULL; their name is the backend's */
  char text[LT_BACKEND_TEXT]; /* the reason of a failure */
} lt_backend;

/* The one symbol of a backend's shared object; called once a process. It links nothing of ltrain,
   never longjmps and keeps no ctx. False: `text` has the reason. */
LT_API bool lt_backend_open(const lt_host *host, lt_backend *out);

#ifdef __cplusplus
}
#endif
#endif
