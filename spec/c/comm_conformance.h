/* spec/c/comm_conformance.h: what the parts of comm_conformance share: the link, faults, numbers. */
#ifndef LT_SPEC_C_COMM_CONFORMANCE_H
#define LT_SPEC_C_COMM_CONFORMANCE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/comm.h"

enum { GIB = 1 << 30 };

/* comm_conformance.c */
extern const lt_comm_host *host;
extern const lt_comm_ops *ops;
extern lt_comm_link *all; /* of all ranks */
extern int rank, size;
__attribute__((format(printf, 1, 2))) void fault(const char *format, ...);
/* A backend that broke or waits for ever cannot be tested further; `alarm` ends the latter. */
void give_up(const char *what, const char *text);

static inline void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL); }

/* comm_movements.c: what links of the host and of devices both do. */
void test_movements(void);
extern bool compares_first; /* each movement comes after a comparison */
void moved(lt_comm_link *l, lt_comm_move *m);
/* n elements of rank r; `rough`: whose sum depends on the order. */
char *filled(lt_dtype d, int r, int64_t n, bool rough);
char *room(lt_dtype d, int64_t n);
/* What n elements of ranks lo..hi-1 of `members` (NULL: all) give, in the tree's order. */
char *tree(lt_dtype d, lt_comm_reduce how, const int *members, int lo, int hi, int64_t n,
           bool rough);
bool same(const char *what, const lt_comm_move *m, const char *got, const char *wanted, int64_t n);

/* comm_device_link.c: finds the device of this rank, and hands the id of rank 0 out through the
   folder that the place's options name. */
bool join_devices(lt_ctx *c, lt_comm_place *place, char id[LT_COMM_ID], char text[LT_COMM_TEXT]);
void test_messages(void);
/* A movement of bytes that the caller has on the host: they go to the device, are moved there, and
   come back. */
lt_progress move_there(lt_comm_link *l, lt_comm_move *m);

#endif
