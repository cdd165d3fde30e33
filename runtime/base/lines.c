/* runtime/base/lines.c: a table of script lines, shared by a root ctx and its children. */
#include "base/lines.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { SOURCE_LENGTH = 96 };

typedef struct entry {
  char source[SOURCE_LENGTH];
  int line;
  uint32_t next; /* in its bucket, 0 ends */
} entry;

enum { BUCKETS = 1024 };

struct lt_line_table {
  pthread_mutex_t mutex;
  entry *entries; /* entries[0] is unused */
  uint32_t count, capacity;
  uint32_t bucket[BUCKETS];
};

lt_line_table *lt_lines_new(lt_ctx *c) {
  lt_line_table *t = lt_alloc(c, sizeof *t);
  if (t == NULL) return NULL;
  pthread_mutex_init(&t->mutex, NULL);
  t->count = 1;
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

static uint32_t insert(lt_ctx *c, lt_line_table *t, const char *source, int line, uint32_t b) {
  if (t->count >= t->capacity) {
    uint32_t capacity = t->capacity == 0 ? 256 : 2 * t->capacity;
    entry *grown = lt_realloc(c, t->entries, t->capacity * sizeof *grown, capacity * sizeof *grown);
    if (grown == NULL) return 0;
    t->entries = grown;
    t->capacity = capacity;
  }
  entry *e = &t->entries[t->count];
  snprintf(e->source, sizeof e->source, "%s", source);
  e->line = line;
  e->next = t->bucket[b];
  t->bucket[b] = t->count;
  return t->count++;
}

uint32_t lt_line_id(lt_ctx *c, const char *source, int line) {
  lt_line_table *t = c->lines;
  char cut[SOURCE_LENGTH];
  snprintf(cut, sizeof cut, "%s", source);
  uint32_t b = hash(cut, line);
  pthread_mutex_lock(&t->mutex);
  uint32_t id = t->bucket[b];
  while (id != 0 && (t->entries[id].line != line || strcmp(t->entries[id].source, cut) != 0))
    id = t->entries[id].next;
  if (id == 0) id = insert(c->root, t, cut, line, b);
  pthread_mutex_unlock(&t->mutex);
  return id;
}

const char *lt_line_text(const lt_ctx *c, uint32_t id, char *buffer, size_t size) {
  lt_line_table *t = c->lines;
  pthread_mutex_lock(&t->mutex);
  if (id == 0 || id >= t->count)
    snprintf(buffer, size, "?");
  else
    snprintf(buffer, size, "%s:%d", t->entries[id].source, t->entries[id].line);
  pthread_mutex_unlock(&t->mutex);
  return buffer;
}
