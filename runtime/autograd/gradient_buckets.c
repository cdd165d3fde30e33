/* runtime/autograd/gradient_buckets.c: counts the complete gradients of each bucket, by hooks that
   exist for one backward.

   Which leaves a backward reaches is known when it begins (post_accumulate.c marks them with the
   number of the walk): the others, of branches that were not used, delay no group.

   DDP reduces gradients in buckets while backward still computes (S. Li et al., "PyTorch
   Distributed", VLDB 2020, section 3.2). Every rank must start the collectives in the same order,
   whatever order its own gradients complete in: hence fn is called for the groups in ascending
   order, and a group that is complete early waits for those before it. */
#include "autograd/gradient_buckets.h"

#include <string.h>

#include "autograd/post_accumulate.h"

typedef struct watched {
  lt_gradient_buckets *all;
  lt_hook hook;
} watched;

struct lt_gradient_buckets {
  int n, n_groups;
  lt_tensor **leaf;
  int *group;  /* [n] */
  int *size;   /* [n_groups] leaves */
  int *due;    /* [n_groups] of these not complete yet */
  int *order;  /* [n] */
  int n_ready; /* in `order` */
  int next;    /* the first group that fn was not called for */
  bool armed, begun;
  bool (*fn)(lt_ctx *c, void *ud, int group);
  void *ud;
  watched *watch; /* [n] */
  size_t ints_bytes;
};

/* Leaves that the walk which has reached `reached` will not reach. */
static void count_absent(lt_gradient_buckets *r, const lt_tensor *reached) {
  uint64_t walk = lt_post_accumulate_walk(reached);
  for (int k = 0; k < r->n; k++)
    if (lt_post_accumulate_walk(r->leaf[k]) != walk) r->due[r->group[k]]--;
  r->begun = true;
}

/* The hook of one leaf: counts its group down, and calls fn for all groups that are next in turn.
   The first call of a backward also subtracts the leaves that this one does not reach. */
static bool is_complete(lt_ctx *c, void *ud, lt_tensor *leaf, lt_tensor **replacement) {
  const watched *w = ud;
  lt_gradient_buckets *r = w->all;
  int k = (int)(w - r->watch);
  (void)replacement;
  if (!r->begun) count_absent(r, leaf);
  r->order[r->n_ready++] = k;
  r->due[r->group[k]]--;
  bool ok = true;
  while (ok && r->next < r->n_groups && r->due[r->next] == 0) ok = r->fn(c, r->ud, r->next++);
  return ok;
}

lt_gradient_buckets *lt_gradient_buckets_new(lt_ctx *c, int n, lt_tensor *const *leaf,
                                             const int *group,
                                             bool (*fn)(lt_ctx *c, void *ud, int group), void *ud) {
  lt_gradient_buckets *r = lt_alloc(c, sizeof *r);
  if (r == NULL) return NULL;
  *r = (lt_gradient_buckets){.n = n, .fn = fn, .ud = ud};
  r->n_groups = n > 0 ? group[n - 1] + 1 : 0;
  r->leaf = lt_alloc(c, (size_t)n * sizeof *r->leaf);
  r->watch = lt_alloc(c, (size_t)n * sizeof *r->watch);
  r->ints_bytes = 2 * (size_t)(n + r->n_groups) * sizeof(int);
  r->group = lt_alloc(c, r->ints_bytes);
  if (!lt_ok(c)) {
    lt_gradient_buckets_free(c, r);
    return NULL;
  }
  r->order = r->group + n;
  r->size = r->order + n;
  r->due = r->size + r->n_groups;
  for (int k = 0; k < n; k++) {
    r->leaf[k] = lt_retain(leaf[k]);
    r->group[k] = group[k];
    r->size[group[k]]++;
    r->watch[k] = (watched){.all = r,
                            .hook = {.fn = is_complete, .ud = &r->watch[k], .after = true}};
  }
  return r;
}

void lt_gradient_buckets_arm(lt_ctx *c, lt_gradient_buckets *r) {
  lt_gradient_buckets_disarm(c, r);
  r->n_ready = r->next = 0;
  r->begun = false;
  memcpy(r->due, r->size, (size_t)r->n_groups * sizeof *r->due);
  for (int k = 0; k < r->n; k++) lt_tensor_add_hook(r->leaf[k], &r->watch[k].hook);
  c->hooks_after += r->n;
  r->armed = true;
}

/* The hooks are members of `watch`, not allocated: they are unlinked, and can be linked again. */
void lt_gradient_buckets_disarm(lt_ctx *c, lt_gradient_buckets *r) {
  if (!r->armed) return;
  for (int k = 0; k < r->n; k++) {
    lt_hook **link = &r->leaf[k]->hooks;
    while (*link != NULL && *link != &r->watch[k].hook) link = &(*link)->next;
    if (lt_assert(c, *link != NULL)) *link = (*link)->next;
    r->watch[k].hook.next = NULL;
  }
  c->hooks_after -= r->n;
  r->armed = false;
}

int lt_gradient_buckets_order(const lt_gradient_buckets *r, const int **leaf) {
  *leaf = r->order;
  return r->n_ready;
}

void lt_gradient_buckets_free(lt_ctx *c, lt_gradient_buckets *r) {
  if (r == NULL) return;
  lt_gradient_buckets_disarm(c, r);
  for (int k = 0; k < r->n && r->leaf != NULL; k++) lt_release(c, r->leaf[k]);
  lt_free(c, r->leaf, (size_t)r->n * sizeof *r->leaf);
  lt_free(c, r->watch, (size_t)r->n * sizeof *r->watch);
  lt_free(c, r->group, r->ints_bytes);
  lt_free(c, r, sizeof *r);
}
