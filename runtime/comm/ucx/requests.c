/* runtime/comm/ucx/requests.c: messages by UCX's tagged ones, and when they are complete.

   UCX matches messages by 64 bits: the group, what the message is for, and the sender's rank there.
   Those of one sender with one tag match in their order. */
#include <stdio.h>
#include <stdlib.h>

#include "comm/ucx/link.h"

typedef struct request {
  void *ucx; /* NULL: complete */
  int peer;  /* among all ranks */
} request;

struct lt_p2p_pending {
  int n;
  request list[];
};

static lt_p2p_pending *pending_new(int capacity) {
  return calloc(1, sizeof(lt_p2p_pending) + (size_t)capacity * sizeof(request));
}

static void pending_free(lt_p2p_pending *p) { free(p); }

static uint64_t tag_of(const lt_comm_link *l, lt_p2p_tag tag, int sender) {
  return (uint64_t)l->group << 32 | (uint64_t)tag << 16 | (uint64_t)sender;
}

static int world_rank(const lt_comm_link *l, int rank) {
  return l->members != NULL ? l->members[rank] : rank;
}

static bool fail(char *text, int rank, ucs_status_t status) {
  snprintf(text, LT_COMM_TEXT, "rank %d: %s", rank, ucs_status_string(status));
  return false;
}

/* A peer's process or its network is gone. Messages to it fail; those from it never come. */
static void on_failure(void *peer, ucp_ep_h endpoint, ucs_status_t status) {
  (void)endpoint;
  ((lt_ucx_peer *)peer)->failed = status;
}

static bool reach(lt_ucx_world *w, int rank, char *text) {
  lt_ucx_peer *peer = &w->peers[rank];
  if (peer->failed != UCS_OK) return fail(text, rank, peer->failed);
  if (peer->endpoint != NULL) return true;
  /* Shared memory does not notice that a peer is gone, and UCX leaves it out where that is asked
     for. Of ranks of one machine the watchdog notices it: their connections to rank 0 end with
     their processes (launch/connections.c). */
  ucp_ep_params_t params = {
      .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                    UCP_EP_PARAM_FIELD_ERR_HANDLER,
      .address = peer->address,
      .err_mode = peer->is_here ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER,
      .err_handler = {.cb = on_failure, .arg = peer},
  };
  ucs_status_t status = ucp_ep_create(w->worker, &params, &peer->endpoint);
  return status == UCS_OK || fail(text, rank, status);
}

/* Takes what UCX returned for a request. */
static bool add(lt_p2p_pending *p, void *ucx, int rank, char *text) {
  if (UCS_PTR_IS_ERR(ucx)) return fail(text, rank, UCS_PTR_STATUS(ucx));
  p->list[p->n++] = (request){.ucx = ucx, .peer = rank};
  return true;
}

/* A small message is complete for its sender when UCX has it, and UCX hands it on only when it is
   called: that of a rank which computes, or has left, could stay behind. So few bytes may be on
   their way that the system's buffers have room for them; then the receiver confirms. */
static bool needs_confirmation(lt_ucx_peer *peer, int64_t bytes) {
  enum { UNCONFIRMED = 32768 };
  peer->unconfirmed += bytes;
  if (peer->unconfirmed <= UNCONFIRMED) return false;
  peer->unconfirmed = 0;
  return true;
}

static bool send_to(lt_p2p *p2p, lt_p2p_pending *p, const void *from, int64_t bytes, int peer,
                    lt_p2p_tag tag, char *text) {
  lt_comm_link *l = (lt_comm_link *)p2p;
  ucp_request_param_t none = {0};
  int rank = world_rank(l, peer);
  if (!reach(l->world, rank, text)) return false;
  lt_ucx_peer *to = &l->world->peers[rank];
  void *ucx = (needs_confirmation(to, bytes) ? ucp_tag_send_sync_nbx : ucp_tag_send_nbx)(
      to->endpoint, from, (size_t)bytes, tag_of(l, tag, l->p2p.rank), &none);
  return add(p, ucx, rank, text);
}

static bool receive(lt_p2p *p2p, lt_p2p_pending *p, void *to, int64_t bytes, int peer,
                    lt_p2p_tag tag, char *text) {
  lt_comm_link *l = (lt_comm_link *)p2p;
  ucp_request_param_t none = {0};
  void *ucx = ucp_tag_recv_nbx(l->world->worker, to, (size_t)bytes, tag_of(l, tag, peer),
                               UINT64_MAX, &none);
  return add(p, ucx, world_rank(l, peer), text);
}

/* Frees a request that has ended; whether it had, and well, is in the result. */
static lt_progress look(const lt_ucx_world *w, request *r, char *text) {
  if (r->ucx == NULL) return LT_DONE;
  ucs_status_t status = ucp_request_check_status(r->ucx);
  if (status == UCS_INPROGRESS) {
    status = w->peers[r->peer].failed;
    if (status == UCS_OK) return LT_PENDING;
  } else {
    ucp_request_free(r->ucx);
    r->ucx = NULL;
  }
  if (status == UCS_OK) return LT_DONE;
  fail(text, r->peer, status);
  return LT_BROKEN;
}

static lt_progress look_at_all(const lt_ucx_world *w, lt_p2p_pending *p, char *text) {
  lt_progress at = LT_DONE;
  for (int k = 0; k < p->n; k++) {
    lt_progress one = look(w, &p->list[k], text);
    if (one == LT_BROKEN) return one;
    if (one == LT_PENDING) at = one;
  }
  return at;
}

static lt_progress test(lt_p2p *p2p, lt_p2p_pending *p, char *text) {
  const lt_ucx_world *w = ((lt_comm_link *)p2p)->world;
  if (p->n == 0) return LT_DONE;
  ucp_worker_progress(w->worker);
  lt_progress at = look_at_all(w, p, text);
  if (at == LT_DONE) p->n = 0;
  return at;
}

const lt_p2p_ops lt_ucx_messages = {
    .pending_new = pending_new,
    .pending_free = pending_free,
    .send = send_to,
    .recv = receive,
    .test = test,
};
