/* spec/dist/files_backend.c: a backend of collectives that is not ltrain's: ranks leave files in a
   folder for each other.

   Slow, but whole: the smallest example of ltrain/comm.h, built without anything of ltrain but its
   installed headers. The place's `options`, or else its main address, is the folder. A file is
   written under another name and renamed, so that whoever sees it sees all of it. Nobody removes
   one: the folder is the user's.

   Compiled with FILES_DEVICE it is a link between devices of that name, whose memory the host can
   reach: the folder is made by rank 0 in TMPDIR, and is the id by which the others find it. */
#define _XOPEN_SOURCE 700
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ltrain/backend.h"

struct lt_comm_link {
  const lt_comm_host *host;
  char folder[PATH_MAX - 256];
  char group[64]; /* begins the names of this link's files */
  int rank, size;
  int splits;
  uint64_t rounds, moves; /* of all ranks, finished so far */
  uint64_t *pairs[2][2];  /* [rounds, moves][sent, received] with each rank */
};

/* The name of what rank `from` says as number `n` of `kind` (to `to`, -1: to all). */
static void name_of(const lt_comm_link *l, char path[PATH_MAX], const char *kind, uint64_t n,
                    int from, int to) {
  snprintf(path, PATH_MAX, "%s/%s%s%llu.%d.%d", l->folder, l->group, kind, (unsigned long long)n,
           from, to);
}

/* A head, and n bytes. */
static bool leave_both(const char *path, const void *head, size_t n_head, const void *bytes,
                       size_t n) {
  char other[PATH_MAX + 4];
  snprintf(other, sizeof other, "%s.new", path);
  FILE *f = fopen(other, "wb");
  if (f == NULL) return false;
  bool ok = n_head == 0 || fwrite(head, 1, n_head, f) == n_head;
  ok = ok && (n == 0 || fwrite(bytes, 1, n, f) == n);
  ok = fclose(f) == 0 && ok;
  return ok && rename(other, path) == 0;
}

static bool leave(const char *path, const void *bytes, size_t n) {
  return leave_both(path, NULL, 0, bytes, n);
}

static bool there(const char *path) {
  FILE *f = fopen(path, "rb");
  if (f != NULL) fclose(f);
  return f != NULL;
}

/* n bytes of a file from `skip` on. */
static bool take(const char *path, size_t skip, void *bytes, size_t n) {
  FILE *f = fopen(path, "rb");
  if (f == NULL) return false;
  bool ok = fseek(f, (long)skip, SEEK_SET) == 0 && (n == 0 || fread(bytes, 1, n, f) == n);
  fclose(f);
  return ok;
}

static lt_progress broken(char *text, const char *what, const char *path) {
  snprintf(text, LT_COMM_TEXT, "cannot %s %.200s", what, path);
  return LT_BROKEN;
}

/* ---- opening ---- */

static lt_comm_link *link_new(const lt_comm_host *host, const char *folder, int rank, int size) {
  lt_comm_link *l = calloc(1, sizeof *l);
  if (l == NULL) return NULL;
  l->host = host;
  l->rank = rank;
  l->size = size;
  snprintf(l->folder, sizeof l->folder, "%s", folder);
  for (int k = 0; k < 4; k++) l->pairs[k / 2][k % 2] = calloc((size_t)size, sizeof(uint64_t));
  return l;
}

static lt_comm_link *open_world(const lt_comm_host *host, const lt_comm_place *place, char *text,
                                size_t text_size) {
  const char *folder = place->options != NULL ? place->options : place->main_address;
  if (folder == NULL || place->size < 1) {
    snprintf(text, text_size, "needs a rank, a size and a folder");
    return NULL;
  }
  return link_new(host, folder, place->rank, place->size);
}

static void close_link(lt_comm_link *l) {
  for (int k = 0; k < 4; k++) free(l->pairs[k / 2][k % 2]);
  free(l);
}

static int link_rank(const lt_comm_link *l) { return l->rank; }
static int link_ranks(const lt_comm_link *l) { return l->size; }

static lt_comm_link *split(lt_comm_link *parent, uint32_t group, int n, const int *members,
                           char *text, size_t text_size) {
  int rank = 0;
  while (members[rank] != parent->rank) rank++;
  lt_comm_link *l = link_new(parent->host, parent->folder, rank, n);
  if (l == NULL) {
    snprintf(text, text_size, "files: no memory");
    return NULL;
  }
  snprintf(l->group, sizeof l->group, "%.32s%x-%d-", parent->group, group, parent->splits++);
  return l;
}

/* ---- comparing ---- */

typedef struct said {
  lt_mark mark;
  int64_t extent;
} said;

/* Leave what this rank says once; `state` is the sign that it has. */
static bool say(lt_comm_compare *c, const char *path) {
  static char sign;
  if (c->state != NULL) return true;
  said mine = {.mark = *c->mark, .extent = c->extent};
  c->state = &sign;
  return leave(path, &mine, sizeof mine);
}

/* Fill in what `rank` said; whether it is the same. */
static bool hear(lt_comm_compare *c, int rank, const said *other) {
  if (c->marks != NULL) c->marks[rank] = other->mark;
  if (c->extents != NULL) c->extents[rank] = other->extent;
  return other->mark.hash == c->mark->hash;
}

static lt_progress compare(lt_comm_link *l, lt_comm_compare *c) {
  char path[PATH_MAX];
  bool equal = true;
  name_of(l, path, "c", l->rounds, l->rank, -1);
  if (!say(c, path)) return broken(c->text, "write", path);
  for (int r = 0; r < l->size; r++) {
    said other;
    name_of(l, path, "c", l->rounds, r, -1);
    if (!take(path, 0, &other, sizeof other)) return LT_PENDING;
    equal = hear(c, r, &other) && equal;
  }
  c->state = NULL;
  l->rounds++;
  return equal ? LT_DONE : LT_DIFFERENT;
}

/* Messages to a peer and messages from it are numbered apart: "s" is what senders say, "r" what
   receivers say. */
static lt_progress compare_pair(lt_comm_link *l, int peer, lt_comm_compare *c) {
  char path[PATH_MAX];
  bool sends = c->mark->op == LT_COMM_SEND;
  uint64_t *n = &l->pairs[0][!sends][peer];
  name_of(l, path, sends ? "s" : "r", *n, l->rank, peer);
  if (!say(c, path)) return broken(c->text, "write", path);
  said mine = {.mark = *c->mark, .extent = c->extent}, other;
  name_of(l, path, sends ? "r" : "s", *n, peer, l->rank);
  if (!take(path, 0, &other, sizeof other)) return LT_PENDING;
  hear(c, l->rank, &mine);
  bool equal = hear(c, peer, &other);
  c->state = NULL;
  ++*n;
  return equal ? LT_DONE : LT_DIFFERENT;
}

/* ---- moving ---- */

static int64_t sum(const int64_t *counts, int n) {
  int64_t total = 0;
  for (int r = 0; r < n; r++) total += counts[r];
  return total;
}

/* Elements that this rank leaves for others. */
static int64_t input_count(const lt_comm_link *l, const lt_comm_move *m) {
  bool root = l->rank == m->root;
  switch ((lt_comm_op)m->op) {
    case LT_COMM_ALL_REDUCE:
    case LT_COMM_SEND: return m->count;
    case LT_COMM_BROADCAST: return root ? m->count : 0;
    case LT_COMM_ALL_GATHER:
    case LT_COMM_GATHER: return m->counts[l->rank];
    case LT_COMM_REDUCE_SCATTER: return sum(m->counts, l->size);
    case LT_COMM_ALL_TO_ALL: return sum(m->in_counts, l->size);
    case LT_COMM_SCATTER: return root ? sum(m->counts, l->size) : 0;
    default: return 0;
  }
}

static bool take_from(const lt_comm_link *l, int rank, int64_t skip, void *out, int64_t n,
                      size_t item) {
  char path[PATH_MAX];
  name_of(l, path, "m", l->moves, rank, -1);
  return take(path, (size_t)skip * item, out, (size_t)n * item);
}

/* What rank `rank` has for this one in an all_to_all: its file begins with how much it has for each. */
static bool take_exchanged(const lt_comm_link *l, int rank, void *out, int64_t n, size_t item) {
  char path[PATH_MAX];
  int64_t counts[LT_COMM_MAX_RANKS];
  size_t head = (size_t)l->size * sizeof *counts;
  name_of(l, path, "m", l->moves, rank, -1);
  if (!take(path, 0, counts, head)) return false;
  return take(path, head + (size_t)sum(counts, l->rank) * item, out, (size_t)n * item);
}

/* out = T(lo, hi) over n elements of each rank's file, `skip` elements in. */
static bool tree(const lt_comm_link *l, const lt_comm_move *m, int lo, int hi, int64_t skip,
                 void *out, int64_t n, size_t item) {
  if (hi - lo == 1) return take_from(l, lo, skip, out, n, item);
  int half = 1;
  while (half * 2 < hi - lo) half *= 2;
  void *other = malloc((size_t)n * item + 1);
  bool ok = other != NULL && tree(l, m, lo, lo + half, skip, out, n, item) &&
            tree(l, m, lo + half, hi, skip, other, n, item);
  if (ok) l->host->combine(out, out, other, n, (lt_dtype)m->dtype, (lt_comm_reduce)m->reduce);
  free(other);
  return ok;
}

/* All files are there: make `out` of them. */
static bool fetch(const lt_comm_link *l, lt_comm_move *m, size_t item) {
  bool root = l->rank == m->root, ok = true;
  char *out = m->out;
  switch ((lt_comm_op)m->op) {
    case LT_COMM_ALL_REDUCE: return tree(l, m, 0, l->size, 0, out, m->count, item);
    case LT_COMM_REDUCE_SCATTER:
      return tree(l, m, 0, l->size, sum(m->counts, l->rank), out, m->counts[l->rank], item);
    case LT_COMM_BROADCAST: return root || take_from(l, m->root, 0, out, m->count, item);
    case LT_COMM_SCATTER:
      return take_from(l, m->root, sum(m->counts, l->rank), out, m->counts[l->rank], item);
    case LT_COMM_ALL_GATHER:
    case LT_COMM_GATHER:
      for (int r = 0; r < l->size && (root || m->op == LT_COMM_ALL_GATHER); r++) {
        ok = ok && take_from(l, r, 0, out, m->counts[r], item);
        out += (size_t)m->counts[r] * item;
      }
      return ok;
    case LT_COMM_ALL_TO_ALL:
      for (int r = 0; r < l->size; r++) {
        ok = ok && take_exchanged(l, r, out, m->counts[r], item);
        out += (size_t)m->counts[r] * item;
      }
      return ok;
    default: return m->op == LT_COMM_BARRIER;
  }
}

static lt_progress move_pair(lt_comm_link *l, lt_comm_move *m, size_t item) {
  char path[PATH_MAX];
  bool sends = m->op == LT_COMM_SEND;
  uint64_t *n = &l->pairs[1][!sends][m->root];
  name_of(l, path, "p", *n, sends ? l->rank : m->root, sends ? m->root : l->rank);
  if (!sends && !there(path)) return LT_PENDING;
  bool ok = sends ? leave(path, m->in, (size_t)m->count * item)
                  : take(path, 0, m->out, (size_t)m->count * item);
  if (!ok) return broken(m->text, sends ? "write" : "read", path);
  ++*n;
  return LT_DONE;
}

static lt_progress move(lt_comm_link *l, lt_comm_move *m) {
  static char sign;
  char path[PATH_MAX];
  size_t item = m->op == LT_COMM_BARRIER ? 1 : l->host->item_size((lt_dtype)m->dtype);
  if (m->op == LT_COMM_SEND || m->op == LT_COMM_RECV) return move_pair(l, m, item);
  if (m->state == NULL) {
    name_of(l, path, "m", l->moves, l->rank, -1);
    const void *in = m->in != NULL ? m->in : m->out;
    size_t head = m->op == LT_COMM_ALL_TO_ALL ? (size_t)l->size * sizeof *m->in_counts : 0;
    if (!leave_both(path, m->in_counts, head, in, (size_t)input_count(l, m) * item))
      return broken(m->text, "write", path);
    m->state = &sign;
  }
  for (int r = 0; r < l->size; r++) {
    name_of(l, path, "m", l->moves, r, -1);
    if (!there(path)) return LT_PENDING;
  }
  m->state = NULL;
  if (!fetch(l, m, item)) return broken(m->text, "read", path);
  l->moves++;
  return LT_DONE;
}

/* ---- the tables ---- */

#ifndef FILES_DEVICE
#define FILES_DEVICE NULL
#endif

static bool make_id(char id[LT_COMM_ID], char *text, size_t text_size) {
  const char *folder = getenv("TMPDIR");
  snprintf(id, LT_COMM_ID, "%s/ltrain_files.XXXXXX", folder != NULL ? folder : "/tmp");
  if (mkdtemp(id) != NULL) return true;
  snprintf(text, text_size, "cannot make %s", id);
  return false;
}

static lt_comm_link *open_between(const lt_comm_host *host, const lt_comm_place *place, char *text,
                                  size_t text_size) {
  lt_comm_link *l = link_new(host, place->id, place->rank, place->size);
  if (l == NULL) snprintf(text, text_size, "files: no memory");
  return l;
}

static const lt_comm_ops between = {
    .size = sizeof(lt_comm_ops),
    .version = LT_COMM_VERSION,
    .name = "files_device",
    .device = FILES_DEVICE,
    .by_host = true,
    .make_id = make_id,
    .open = open_between,
    .close = close_link,
    .abandon = close_link,
    .rank = link_rank,
    .ranks = link_ranks,
    .move = move,
};

static const lt_comm_ops ops = {
    .size = sizeof(lt_comm_ops),
    .version = LT_COMM_VERSION,
    .name = "files",
    .fixed_order = true,
    .open = open_world,
    .close = close_link,
    .abandon = close_link,
    .rank = link_rank,
    .ranks = link_ranks,
    .compare = compare,
    .move = move,
    .split = split,
    .leave = close_link,
    .compare_pair = compare_pair,
};

LT_API bool lt_backend_open(const lt_host *host, lt_backend *out) {
  (void)host;
  out->version = LT_BACKEND_VERSION;
  out->about = "files in a folder";
  out->comm = between.device != NULL ? &between : &ops;
  return true;
}
