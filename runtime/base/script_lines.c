/* runtime/base/script_lines.c: the table of script lines, shared by a root ctx and its children.

   It holds the latest MOST lines: a program may load chunks without end. Ids count up, and an entry
   knows whose it is, so that a line that was forgotten is "?" and never another one. */
#include "base/script_lines.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { SOURCE_LENGTH = 96, MOST = 1 << 16, BUCKETS = 4096 };

typedef struct entry {
  char source[SOURCE_LENGTH];
  int line;
  uint32_t id;   /* 0: none yet */
  uint32_t next; /* id in its bucket, 0 ends */
} entry;

struct lt_line_table {
  pthread_mutex_t mutex;
  entry *entries; /* of id: entries[id % MOST] */
  uint32_t last, capacity;
  uint32_t bucket[BUCKETS];
};

lt_line_table *lt_lines_new(lt_ctx *c) {
  lt_line_table *t = lt_alloc(c, sizeof *t);
  if (t == NULL) return NULL;
  pthread_mutex_init(&t->mutex, NULL);
  return t;
}

void lt_lines_free(lt_ctx *c, lt_line_table *t) {
  if (t == NULL) return;
  pthread_mutex_destroy(&t->mutex);
  lt_free(c, t->entries, t->capacity * sizeof *t->entries);
  lt_free(c, t, sizeof *t);
}

static uint32_t hash(const char *source, int line) {
  uint32_t h = 2166136261u ^ (uint32_t)line;
  for (; *source != 0; source++) h = (h ^ (uint8_t)*source) * 16777619u;
  return h % BUCKETS;
}

/* The entry of that id; NULL when it was forgotten. */
static entry *find(const lt_line_table *t, uint32_t id) {
  entry *e = id % MOST < t->capacity ? &t->entries[id % MOST] : NULL;
  return id != 0 && e != NULL && e->id == id ? e : NULL;
}

static bool grow(lt_ctx *c, lt_line_table *t) {
  uint32_t capacity = t->capacity == 0 ? 256 : 2 * t->capacity, line = c->line;
  c->line = 0; /* a failure would look for its line here, in the locked table */
  entry *grown = lt_realloc(c, t->entries, t->capacity * sizeof *grown, capacity * sizeof *grown);
  c->line = line;
  if (grown == NULL) return false;
  memset(grown + t->capacity, 0, (capacity - t->capacity) * sizeof *grown);
  t->entries = grown;
  t->capacity = capacity;
  return true;
}

/* Take the line out of its bucket: its entry is wanted for another. */
static void forget(lt_line_table *t, const entry *old) {
  uint32_t *at = &t->bucket[hash(old->source, old->line)];
  while (*at != old->id) at = &find(t, *at)->next;
  *at = old->next;
}

static uint32_t insert(lt_ctx *c, lt_line_table *t, const char *source, int line, uint32_t b) {
  uint32_t id = t->last + 1;
  if (id == 0) id = MOST; /* all ids were used: from the start, where entries[0] is */
  if (id % MOST >= t->capacity && !grow(c, t)) return 0;
  entry *e = &t->entries[id % MOST];
  if (e->id != 0) forget(t, e);
  snprintf(e->source, sizeof e->source, "%s", source);
  e->line = line;
  e->id = id;
  e->next = t->bucket[b];
  t->last = t->bucket[b] = id;
  return id;
}

uint32_t lt_line_id(lt_ctx *c, const char *source, int line) {
  lt_line_table *t = c->lines;
  char cut[SOURCE_LENGTH];
  snprintf(cut, sizeof cut, "%s", source);
  uint32_t b = hash(cut, line);
  pthread_mutex_lock(&t->mutex);
  uint32_t id = t->bucket[b];
  for (const entry *e; id != 0; id = e->next) {
    e = find(t, id);
    if (e->line == line && strcmp(e->source, cut) == 0) break;
  }
  if (id == 0) id = insert(c->root, t, cut, line, b);
  pthread_mutex_unlock(&t->mutex);
  return id;
}

bool lt_line_place(const lt_ctx *c, uint32_t id, char *source, size_t size, int *line) {
  lt_line_table *t = c->lines;
  pthread_mutex_lock(&t->mutex);
  const entry *e = find(t, id);
  if (e != NULL) snprintf(source, size, "%s", e->source);
  if (e != NULL) *line = e->line;
  pthread_mutex_unlock(&t->mutex);
  return e != NULL;
}

const char *lt_line_text(const lt_ctx *c, uint32_t id, char *buffer, size_t size) {
  char source[SOURCE_LENGTH];
  int line;
  if (lt_line_place(c, id, source, sizeof source, &line))
    snprintf(buffer, size, "%s:%d", source, line);
  else
    snprintf(buffer, size, "?");
  return buffer;
}
