/* runtime/device/segments.h: large blocks of a pool, of 1 MiB and more, cut from segments of the
   device's memory. */
#ifndef LT_DEVICE_SEGMENTS_H
#define LT_DEVICE_SEGMENTS_H

#include "device/pool.h"

/* The smallest free block of at least `bytes`, without what it has beyond them; NULL: there is
   none. LT_TAKE_IDLE looks in segments of its own. */
lt_block *lt_segments_find(lt_ctx *c, lt_pool *p, size_t bytes, lt_take how);
/* The same of a new segment; NULL: the device has no memory. May wait for the device. */
lt_block *lt_segments_new(lt_ctx *c, lt_pool *p, size_t bytes, lt_take how);
/* A block is free, and joined with free neighbours. The pool's count of cached bytes has it. */
void lt_segments_give(lt_pool *p, lt_block *b);
/* Give the segments back of which all is free. All work on free blocks is done. */
void lt_segments_trim(lt_pool *p);

#endif
