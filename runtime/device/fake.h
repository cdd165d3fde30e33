/* runtime/device/fake.h: a device kind for specs: 4 asynchronous devices over host memory.

   It runs the cpu's kernels, late: work is queued by stream and runs when the host waits. Work that
   is not ordered runs in adverse orders: what is waited for before all other work, or after all of
   it (lt_fake_set_order). New and freed memory is filled with 0xff, a NaN in each floating type.

   With LT_FAKE_RECORDS=1 it is a device with whole storages (backend.h): all that is issued on a
   device is recorded in one order, and runs when a batch ends or the host waits for some of it. */
#ifndef LT_DEVICE_FAKE_H
#define LT_DEVICE_FAKE_H

#include "device/device.h"

/* The table, made from the cpu's. */
const lt_device_ops *lt_fake_ops(const lt_device_ops *cpu);

/* Since the process began, of all four. A wait is one of the host for work that had not run yet; a
   cut is where recorded work ran. */
typedef struct lt_fake_counts {
  int64_t launches, copies, waits, allocations, pending, cuts;
} lt_fake_counts;
lt_fake_counts lt_fake_count(void);

/* When work of other streams runs as the host waits for one: in turns (at first), or always after
   it, or always before it. */
typedef enum lt_fake_order {
  LT_FAKE_TURNS, LT_FAKE_OTHERS_LAST, LT_FAKE_OTHERS_FIRST
} lt_fake_order;
void lt_fake_set_order(lt_fake_order order);

/* A storage's memory became free. If it is of this kind: it is filled once all work on it ran. */
void lt_fake_freed(lt_ctx *c, lt_storage *s, size_t capacity);

#endif
