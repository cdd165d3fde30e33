/* runtime/comm/close.c: all groups of a process are finished or closed together.

   In the order in which they were made, which is the same on all ranks: a transport may close a
   link by a collective of its own. After an outcome ranks may be dead, and links are abandoned. */
#include "comm/group.h"

void lt_group_finish(lt_ctx *c, lt_group *g) {
  for (lt_group *k = g->root; k != NULL; k = k->next) lt_device_wait_finish(c, k);
}

void lt_group_close(lt_ctx *c, lt_group *g) {
  lt_group *root = g->root;
  if (root->link == NULL) return;
  lt_group_finish(c, root);
  lt_device_wait_end(c, root);
  bool over = lt_group_is_over(root);
  const char *text = over ? root->heartbeat->outcome.text : "the ranks of this group have ended";
  lt_group_retain(root);
  /* Works first, then links: a work that is ended still reads its group's link. */
  for (lt_group *next, *k = root; k != NULL; k = next) {
    lt_group_retain(k); /* its last works may hold the last reference */
    lt_queue_end(c, k, LT_ERANKS, text);
    next = k->next;
    if (k != root) lt_group_unlist(k); /* `next` stays right: it continues behind k */
    if (!over) lt_device_links_end(k, true);
    if (k != root && !over) k->ops->close(k->link);
    if (k != root && over) lt_group_abandon(k);
    if (k != root) k->link = NULL;
    k->heartbeat = k == root ? k->heartbeat : NULL;
    lt_group_release(c, k);
  }
  if (over)
    lt_group_abandon(root);
  else
    root->ops->close(root->link);
  root->link = NULL;
  root->heartbeat = NULL;
  lt_group_release(c, root);
}
