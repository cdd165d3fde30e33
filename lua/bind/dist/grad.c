/* lua/bind/dist/grad.c: gradients through collectives.

   Each rank differentiates the sum of all ranks' losses: what it handed out comes back as the sum
   of what every rank made of it.

     all_reduce sum, mean      the same reduction of the gradient
     all_gather                reduce_scatter of the gradient: this rank's part, summed
     all_gather with cat       the same where parts are unequal: all_reduce, cut out
     reduce_scatter sum, mean  all_gather of the gradient
     broadcast                 reduce of the gradient to the root, zeros elsewhere
     all_to_all                all_to_all of the gradient, back
     gather                    scatter of the root's gradient
     scatter                   gather of the gradients to the root
     send                      recv of the gradient from the peer
     recv                      send of the gradient to the peer, which nobody waits for

   Backward of messages mirrors forward, and so it ends wherever that did: the node of a send is as
   old as its issue, and waits for a gradient only when all that came after is done; the node of a
   recv is as old as its wait, and sends as soon as there is a gradient. In a ring where all send to
   the next rank and receive from the one before, no order of the two can block.

   Backward is therefore a collective itself, which all ranks of the group must run: in a training
   step all of them are visited, in the reverse order of their issue (autograd/required_nodes.c). */
#include <stdio.h>
#include <string.h>

#include "autograd/backward.h"
#include "bind/core/call.h"
#include "bind/core/raise.h"
#include "bind/core/types.h"
#include "bind/dist/dist.h"
#include "ops/node.h"

/* What a node keeps of the collective that made it. */
typedef struct passed {
  lt_group_ref ref;
  const char *who;
  lt_comm_op op;
  lt_comm_reduce reduce;
  bool cat;
  int root;
  bool has_input;       /* else only others have one: what came from the root, or the sender */
  lt_shape shape;       /* of the input */
  lt_dtype dtype;
  lt_device device;
  uint64_t number;      /* of the message */
  int64_t offset;       /* cat: of its rows in the result */
  int64_t *rows, *from; /* of an all_to_all of unequal parts */
  int64_t most;
  size_t rows_bytes;
  lt_place place;
} passed;

/* What came from a rank goes back to it. */
static bool swap_rows(lt_ctx *c, const passed *p, lt_collective *k) {
  int n = lt_group_size(p->ref.group);
  if (!lt_collective_rows(c, k, n)) return false;
  memcpy(k->rows, p->from, (size_t)n * sizeof *k->rows);
  memcpy(k->from, p->rows, (size_t)n * sizeof *k->from);
  k->most = p->most;
  return true;
}

static lt_tensor *run(lt_ctx *c, const passed *p, lt_comm_op op, lt_comm_reduce reduce,
                      lt_tensor *x) {
  if (x == NULL) return NULL;
  lt_collective k = {.who = p->who,
                     .op = op,
                     .reduce = reduce,
                     .root = p->root,
                     .x = x,
                     .record = lt_recording(c, 1, &x),
                     .place = p->place};
  if (p->rows != NULL && op == LT_COMM_ALL_TO_ALL && !swap_rows(c, p, &k)) return NULL;
  if (!lt_collective_issue(c, &k, p->ref.group)) return NULL;
  return lt_collective_finish(c, &k);
}

static lt_tensor *flat(lt_ctx *c, lt_tensor *x) {
  return lt_reshape(c, x, lt_shape_of(1, &x->numel));
}

static lt_tensor *of_all_gather(lt_ctx *c, const passed *p, lt_tensor *g) {
  if (!p->cat) {
    lt_tensor *part = run(c, p, LT_COMM_REDUCE_SCATTER, LT_COMM_SUM, flat(c, g));
    return part != NULL ? lt_reshape(c, part, p->shape) : NULL;
  }
  lt_tensor *sum = run(c, p, LT_COMM_ALL_REDUCE, LT_COMM_SUM, g);
  return sum != NULL ? lt_slice(c, sum, 0, p->offset, p->shape.size[0], 1) : NULL;
}

static lt_tensor *of_reduce_scatter(lt_ctx *c, const passed *p, lt_tensor *g) {
  lt_tensor *all = run(c, p, LT_COMM_ALL_GATHER, LT_COMM_NO_REDUCE, g);
  if (all == NULL) return NULL;
  all = lt_reshape(c, all, p->shape);
  if (p->reduce == LT_COMM_SUM || all == NULL) return all;
  return lt_binary_scalar(c, LT_OP_div, all, lt_scalar_of(lt_group_size(p->ref.group)));
}

/* The root's input made what all ranks have; what others passed was not used. */
static lt_tensor *of_broadcast(lt_ctx *c, const passed *p, lt_tensor *g) {
  lt_dtype dtype = (lt_dtype)g->dtype;
  lt_device at = g->storage->device;
  lt_tensor *sum = run(c, p, LT_COMM_REDUCE, LT_COMM_SUM, g);
  return sum != NULL || !lt_ok(c) ? sum : lt_full(c, p->shape, (lt_scalar){0}, dtype, at);
}

static bool finish(lt_ctx *c, lt_work *w) {
  bool ok = w != NULL && lt_work_wait(c, w);
  lt_work_release(c, w);
  return ok;
}

static lt_tensor *make_gradient(lt_ctx *c, const passed *p) {
  return lt_tensor_empty(c, p->device, p->dtype, p->shape.ndim, p->shape.size);
}

/* At other ranks `g` is the gradient of a zero. */
static lt_tensor *of_gather(lt_ctx *c, const passed *p, lt_tensor *g) {
  bool is_root = lt_group_rank(p->ref.group) == p->root;
  lt_tensor *all = is_root ? lt_contiguous(c, g) : NULL, *own = make_gradient(c, p);
  if (!lt_ok(c)) return NULL;
  lt_origin at = lt_origin_of(&p->place);
  return finish(c, lt_comm_scatter(c, p->ref.group, all, own, p->root, at)) ? own : NULL;
}

static lt_tensor *of_scatter(lt_ctx *c, const passed *p, lt_tensor *g) {
  lt_tensor *all = run(c, p, LT_COMM_GATHER, LT_COMM_NO_REDUCE, g);
  if (all != NULL && p->has_input) all = lt_to_device(c, lt_reshape(c, all, p->shape), p->device);
  return all;
}

static lt_tensor *of_send(lt_ctx *c, const passed *p) {
  lt_tensor *own = make_gradient(c, p);
  if (own == NULL) return NULL;
  lt_origin at = lt_origin_of(&p->place);
  return finish(c, lt_comm_recv_grad(c, p->ref.group, own, p->root, p->number, at)) ? own : NULL;
}

/* The work is the queue's: waiting here, two ranks could wait for each other. It sends from `g` at
   some later time, so that one which a hook has kept is copied. */
static void of_recv(lt_ctx *c, const passed *p, lt_tensor *g) {
  bool is_shared = g->object.refs > 1 || atomic_load(&g->storage->refs) > 1;
  if (is_shared || !g->contiguous)
    g = lt_apply1(c, LT_OP_clone, 1, &g, &(lt_args_clone){.contiguous = true});
  if (g == NULL) return;
  lt_origin at = lt_origin_of(&p->place);
  lt_work_release(c, lt_comm_send_grad(c, p->ref.group, g, p->root, p->number, at));
}

static lt_tensor *gradient_of(lt_ctx *c, const passed *p, lt_tensor *g) {
  switch (p->op) {
    case LT_COMM_ALL_REDUCE: return run(c, p, LT_COMM_ALL_REDUCE, p->reduce, g);
    case LT_COMM_ALL_GATHER: return of_all_gather(c, p, g);
    case LT_COMM_BROADCAST: return of_broadcast(c, p, g);
    case LT_COMM_ALL_TO_ALL: return run(c, p, LT_COMM_ALL_TO_ALL, LT_COMM_NO_REDUCE, g);
    case LT_COMM_REDUCE_SCATTER: return of_reduce_scatter(c, p, g);
    case LT_COMM_GATHER: return of_gather(c, p, g);
    case LT_COMM_SCATTER: return of_scatter(c, p, g);
    case LT_COMM_SEND: return of_send(c, p);
    case LT_COMM_RECV: of_recv(c, p, g); break;
    case LT_COMM_BARRIER: /* they have none */
    case LT_COMM_SPLIT:
    case LT_COMM_REDUCE:
    case LT_COMM_OP_COUNT: break;
  }
  return NULL;
}

/* Only some of the ranks have an input there, so that a derivative of the gradient would have to be
   asked for by ranks that have none. */
static bool is_once(lt_comm_op op) {
  return op == LT_COMM_GATHER || op == LT_COMM_SCATTER || op == LT_COMM_SEND || op == LT_COMM_RECV;
}

static bool pass_back(lt_ctx *c, void *ud, lt_tensor *const *grad_out, lt_tensor **grad_in) {
  const passed *p = ud;
  lt_tensor *g = grad_out[0];
  if (p->ref.group == NULL)
    return lt_fail(c, LT_EARG, "backward of %s (%s:%d): the launch that it belongs to has ended",
                   p->who, p->place.file, p->place.line);
  if (c->modes.grad && is_once(p->op))
    return lt_fail(c, LT_EARG,
                   "backward of %s (%s:%d): its gradient has no gradient: leave out create_graph",
                   p->who, p->place.file, p->place.line);
  if (!lt_dist_call_before(c, p->ref.group)) return false;
  lt_tensor *gradient = gradient_of(c, p, g);
  if (!p->has_input) return lt_ok(c);
  grad_in[0] = gradient;
  return gradient != NULL && lt_ok(c);
}

static void drop(lt_ctx *c, void *ud) {
  passed *p = ud;
  lt_group_ref_clear(c, &p->ref);
  lt_free(c, p->rows, p->rows_bytes);
  lt_free(c, p, sizeof *p);
}

bool lt_collective_record(lt_ctx *c, lt_collective *k, lt_tensor *y, int64_t offset) {
  passed *p = lt_alloc(c, sizeof *p);
  if (p == NULL) return false;
  const lt_tensor *input = k->x != NULL ? k->x : y;
  *p = (passed){.who = k->who,
                .op = k->op,
                .reduce = k->reduce,
                .cat = k->cat,
                .root = k->root,
                .has_input = k->x != NULL,
                .rows = k->rows,
                .from = k->from,
                .most = k->most,
                .rows_bytes = k->rows_bytes,
                .shape = lt_tensor_shape(input),
                .dtype = (lt_dtype)input->dtype,
                .device = input->storage->device,
                .number = lt_work_number(k->ref.work),
                .offset = offset,
                .place = k->place};
  k->rows = k->from = NULL; /* the node's now */
  k->rows_bytes = 0;
  snprintf(p->place.hook, sizeof p->place.hook, "backward");
  lt_group_ref_set(c, &p->ref, k->ref.group);
  const lt_custom custom = {.name = k->who, .fn = pass_back, .drop = drop, .ud = p};
  if (!lt_record_custom(c, k->x != NULL, &k->x, 1, &y, custom)) return false;
  if (k->in_place) y->storage->recorded = y->storage->version;
  return lt_required_nodes_note(c, (lt_node *)y->node);
}

lt_tensor *lt_collective_record_zero(lt_ctx *c, lt_collective *k) {
  const lt_tensor *x = k->x;
  lt_tensor *zero =
      lt_full(c, (lt_shape){0}, lt_scalar_of(0), (lt_dtype)x->dtype, x->storage->device);
  return zero != NULL && lt_collective_record(c, k, zero, 0) ? zero : NULL;
}

/* Training steps. */

/* dist.begin_step(): the next backward visits all collectives issued from here on */
static int begin_step(lua_State *L) {
  lt_bind *b = lt_enter(L);
  if (!lt_required_nodes_begin(b->c)) lt_raise_failure(L, b);
  return 0;
}

/* dist.unvisited() -> the number of collectives of the step that no backward has visited */
static int unvisited(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_pushinteger(L, lt_required_nodes_count(b->c));
  return 1;
}

/* dist.use_part(part): makes part number `part`, from 0, of the step current: backward visits the
   collectives of a part alone */
static int use_part(lua_State *L) {
  lua_Integer part = luaL_checkinteger(L, 1);
  lt_bind *b = lt_enter(L);
  if (!lt_required_nodes_use(b->c, part)) lt_raise_failure(L, b);
  return 0;
}

/* dist.part() -> the number of the part of the step that is current */
static int part(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lua_pushinteger(L, lt_required_nodes_part(b->c));
  return 1;
}

/* dist.visit_rest(): backward of the collectives that none has visited, with zeros: other ranks
   wait for them */
static int visit_rest(lua_State *L) {
  lt_bind *b = lt_enter(L);
  if (lt_required_nodes_count(b->c) == 0) return 0;
  const lt_backward_options o = {0};
  lt_frame frame = lt_begin(L, b, 0);
  lt_backward(b->c, NULL, &o);
  lt_end_call(L, b, frame);
  return 0;
}

/* dist.end_step(): the step is over */
static int end_step(lua_State *L) {
  lt_bind *b = lt_enter(L);
  lt_required_nodes_end(b->c);
  return 0;
}

void lt_bind_dist_grad(lua_State *L, lt_bind *b) {
  static const luaL_Reg functions[] = {
      {"begin_step", begin_step}, {"use_part", use_part}, {"part", part}, {"unvisited", unvisited},
      {"visit_rest", visit_rest}, {"end_step", end_step}, {NULL, NULL}};
  lt_add_functions(L, b, functions);
}
