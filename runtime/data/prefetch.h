/* runtime/data/prefetch.h: batches gathered ahead by one helper thread.

   The thread has a ctx of its own and hands storages over; tensors are made by the consumer. When
   the thread has been stopped (before a fork), the consumer gathers by itself. */
#ifndef LT_DATA_PREFETCH_H
#define LT_DATA_PREFETCH_H

#include "data/gather.h"

enum { LT_PREFETCH_MAX = 16, LT_COLUMNS_MAX = 16 };

typedef struct lt_prefetch lt_prefetch;

/* Gathers `columns` (checked before, at most LT_COLUMNS_MAX) in `order` from `position` on, at most
   `depth` batches ahead; depth 0: no thread. Retains order and sources. */
lt_prefetch *lt_prefetch_new(lt_ctx *c, lt_order *order, const lt_batching *batching,
                             int64_t position, int n_columns, const lt_column *columns, int depth);

/* The next batch: a tensor a column, in the open frame, and which samples it holds (total 0: the
   end, n 0: only other ranks have some; nothing in out). False with a failure, also one that the
   thread met. */
bool lt_prefetch_next(lt_ctx *c, lt_prefetch *p, lt_tensor **out, lt_span *span);

/* Stops the thread at once and drops what it has gathered. NULL is allowed. */
void lt_prefetch_release(lt_ctx *c, lt_prefetch *p);

#endif
