/* runtime/comm/ucx/link.h: what the files of the UCX backend share.

   This folder and comm/p2p are a shared object of their own (ltrain_ucx.so). It includes nothing of
   ltrain but the headers ltrain/... and its own, links nothing of it, and calls UCX from the rank's
   main thread alone. */
#ifndef LT_COMM_UCX_LINK_H
#define LT_COMM_UCX_LINK_H

#include <ucp/api/ucp.h>

#include "comm/p2p/p2p.h"

/* Another rank, by its rank among all. Its endpoint is made with the first message to it. */
typedef struct lt_ucx_peer {
  const ucp_address_t *address;
  bool is_here; /* on this rank's machine */
  ucp_ep_h endpoint;
  ucs_status_t failed; /* UCS_OK: it has not */
  int64_t unconfirmed; /* bytes that were sent since it confirmed some */
} lt_ucx_peer;

/* Of all ranks: what their links share. */
typedef struct lt_ucx_world {
  ucp_context_h context;
  ucp_worker_h worker;
  char *own; /* what the others need to reach this rank, own_bytes: its machine, and its address */
  size_t own_bytes;
  char *addresses; /* those of all ranks, one after the other */
  lt_ucx_peer *peers;
  int rank, size;
} lt_ucx_world;

struct lt_comm_link {
  lt_p2p p2p;
  lt_ucx_world *world;
  uint32_t group; /* in the tags of its messages; 0: all ranks */
  int *members;   /* [size] ranks among all; NULL: all of them */
};

/* requests.c */
extern const lt_p2p_ops lt_ucx_messages;

/* In front of an address: a hash of the machine. */
enum { LT_UCX_MACHINE = sizeof(uint64_t) };

/* worker.c: UCX's start and end. NULL: `text` has the reason. */
lt_ucx_world *lt_ucx_world_new(int rank, int size, char *text);
/* Closes connections in order, which the others do, too. */
void lt_ucx_world_close(lt_ucx_world *w);

/* bootstrap_wire.c: a hash of a text. */
uint64_t lt_ucx_hash(const char *text);
/* bootstrap.c, connect.c: every rank's address to all: fills in w->addresses and w->peers. */
bool lt_ucx_meet(lt_ucx_world *w, const lt_comm_place *place, int64_t began_ns, char *text);

#endif
