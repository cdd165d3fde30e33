/* spec/c/device_conformance.h: what the parts of device_conformance share. */
#ifndef LT_C_DEVICE_CONFORMANCE_H
#define LT_C_DEVICE_CONFORMANCE_H

#include "device/device.h"

/* The device under test, and how many of its kind are used. */
extern const lt_device_ops *ops;
extern lt_device device;
extern int devices;

/* Prints a promise that was not kept, "stream_wait: ...", and counts it. */
__attribute__((format(printf, 1, 2))) void fault(const char *format, ...);

/* A call of the table that must succeed: otherwise a fault of `what` with the ctx's failure. */
bool good(lt_ctx *c, bool ok, const char *what);
/* One that must not: false with a failure in the ctx, which is taken out. */
void bad(lt_ctx *c, bool ok, const char *what);

/* Bytes that differ by place and by `seed`; whether they are still these. */
void pattern(void *memory, size_t bytes, unsigned seed);
bool is_pattern(const void *memory, size_t bytes, unsigned seed);

/* A stream of a device: the same ones all the time, since streams are never freed. NULL on a
   synchronous device, or with a fault. */
enum { STREAM_A, STREAM_B, STREAM_URGENT, STREAMS };
lt_stream *stream_of(lt_ctx *c, int index, int which);

/* Pinned memory where the device has it, else plain. */
void *host_new(size_t bytes);
void host_free(void *memory, size_t bytes);

void test_copies(lt_ctx *c, int index);   /* device_copies.c */
void test_streams(lt_ctx *c, int index);  /* device_streams.c */
void test_reductions(lt_ctx *c, int index); /* device_reductions.c */
void test_kernels(lt_ctx *c);             /* device_kernels.c */

#endif
