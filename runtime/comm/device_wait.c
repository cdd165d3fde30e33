/* runtime/comm/device_wait.c: watches for failures of ranks while the host waits for a device that
   communicates with them.

   A collective that was issued there may never end: a rank has died, its link has failed, or one
   does not come to it. The wait then ends as one of comm/ does, with an outcome; the links are
   given up first, which frees the devices. */
#include <string.h>

#include "comm/group.h"
#include "device/wait.h"

enum { REPORT_NS = 100000000 }; /* of waiting, before it is reported to the watchdog */

static bool is_done(const lt_under_way *u) {
  const lt_device_ops *ops = lt_device_kinds[u->at.kind];
  return ops->event_done(u->ready) != LT_PENDING;
}

/* The first movement of the link that has not ended; NULL: none. */
static const lt_under_way *first_of(lt_device_link *b) {
  while (b->n_under_way > 0 && is_done(&b->under_way[b->first])) {
    b->first = (b->first + 1) % LT_UNDER_WAY;
    b->n_under_way--;
  }
  return b->n_under_way > 0 ? &b->under_way[b->first] : NULL;
}

void lt_device_wait_add(lt_ctx *c, const lt_work *w) {
  lt_device_link *b = lt_device_link_for(c, w);
  first_of(b);
  if (b->n_under_way == LT_UNDER_WAY) return;
  lt_under_way *u = &b->under_way[(b->first + b->n_under_way++) % LT_UNDER_WAY];
  *u = (lt_under_way){.mark = w->mark,
                      .at = w->device.at,
                      .before = w->device.before,
                      .after = w->move.after,
                      .ready = w->device.ready};
  is_done(u); /* asked for later it would stand for more */
}

/* The host waits for all movements of a group's links. */
static bool finish(lt_ctx *c, lt_group *g) {
  bool ok = true;
  for (lt_device_link *b = &g->between; b != NULL && ok; b = b->next) {
    lt_stream *stream = b->n_under_way > 0 ? b->under_way[b->first].ready.stream : b->stream;
    ok = stream == NULL || lt_wait_stream(c, b->at, stream);
  }
  return ok;
}

void lt_device_wait_finish(lt_ctx *c, lt_group *g) {
  if (lt_ok(c) && !finish(c, g)) lt_take_failure(c, NULL);
}

/* What has been issued there is given up. */
static void give_up(lt_ctx *c, lt_group *root) {
  for (lt_group *g = root; g != NULL; g = g->next) {
    for (lt_device_link *b = &g->between; b != NULL; b = b->next) {
      const lt_under_way *u = first_of(b);
      if (u != NULL) lt_wait_spoil(c, u->at, u->before);
      if (u != NULL) lt_wait_spoil(c, u->at, u->after);
      if (b->link != NULL) g->broken = true;
      b->n_under_way = 0;
    }
    lt_device_links_end(g, false);
  }
}

void lt_device_wait_end(lt_ctx *c, lt_group *root) {
  if (lt_group_is_over(root)) give_up(c, root);
  lt_wait_set_watch(c, (lt_wait_watch){0});
}

/* Whether a link has failed: then `text` says how, with the collective. */
static bool has_failed(const lt_group *g, lt_device_link *b, char *text, size_t size) {
  char why[LT_COMM_TEXT] = "";
  if (b->link == NULL || b->ops->check == NULL) return false;
  if (b->ops->check(b->link, why, sizeof why) != LT_BROKEN) return false;
  if (lt_link_patience(g, b) == LT_PENDING) return false;
  const lt_under_way *u = first_of(b);
  text[0] = 0;
  if (u != NULL) lt_mark_text(&u->mark, g->world[g->rank], text, size);
  lt_text_add(text, size, "%s%s", u != NULL ? ": " : "", why);
  return true;
}

static bool one_has_failed(lt_group *root, char *text, size_t size) {
  for (lt_group *g = root; g != NULL; g = g->next)
    for (lt_device_link *b = &g->between; b != NULL; b = b->next)
      if (has_failed(g, b, text, size)) return true;
  return false;
}

/* The movement that the device waits in: its memory is there. */
static lt_group *stuck_in(lt_group *root, const lt_under_way **out) {
  for (lt_group *g = root; g != NULL; g = g->next)
    for (lt_device_link *b = &g->between; b != NULL; b = b->next) {
      const lt_under_way *u = *out = first_of(b);
      if (u == NULL) continue;
      const lt_device_ops *ops = lt_device_kinds[u->at.kind];
      if (u->after.stream == NULL || ops->event_done(u->after) != LT_PENDING) return g;
    }
  return NULL;
}

static bool look(lt_ctx *c, void *ud, int64_t ns) {
  lt_group *root = ud;
  lt_heartbeat *h = root->heartbeat;
  char text[LT_WORK_TEXT * 2];
  const lt_under_way *u;
  bool over = lt_group_is_over(root);
  if (over || one_has_failed(root, text, sizeof text)) {
    give_up(c, root);
    lt_wait_set_watch(c, (lt_wait_watch){0});
    return lt_fail(c, LT_ERANKS, "%s", over ? h->outcome.text : text);
  }
  if (ns < REPORT_NS || h == NULL || root->between.reported) return true;
  lt_group *g = stuck_in(root, &u);
  if (g != NULL) lt_wait_report(g, &u->mark);
  root->between.reported = g != NULL;
  return true;
}

static void end(lt_ctx *c, void *ud) {
  lt_group *root = ud;
  (void)c;
  if (root->between.reported) lt_wait_report_end(root);
  root->between.reported = false;
}

static bool finish_all(lt_ctx *c, void *ud) {
  bool ok = true;
  for (lt_group *g = ud; g != NULL && ok; g = g->next) ok = finish(c, g);
  return ok;
}

void lt_device_wait_begin(lt_ctx *c, lt_group *root) {
  lt_wait_set_watch(
      c, (lt_wait_watch){.look = look, .end = end, .finish = finish_all, .ud = root});
}
