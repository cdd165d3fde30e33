/* runtime/launch/files.c: the failure in files, for when stderr is a broken pipe.

   failure.rank<N>.txt is the message, ring.rank<N>.jsonl the last collectives of the rank: what
   `ltrain diagnose` reads. Written by watchdogs: open and write alone. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/world.h"

enum { PATH = 2 * PATH_MAX + 64 };

static int open_file(const lt_world *w, const char *form, int rank) {
  char path[PATH], name[64];
  snprintf(name, sizeof name, form, rank);
  snprintf(path, sizeof path, "%s/%s", w->folder, name);
  return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

static void write_text(const lt_world *w, int rank, const char *text) {
  int fd = open_file(w, "failure.rank%d.txt", rank);
  if (fd < 0) return;
  char line[LT_VERDICT_TEXT + 1];
  size_t n = (size_t)snprintf(line, sizeof line, "%s\n", text);
  ssize_t done = write(fd, line, n);
  (void)done; /* a full disk: stderr has it too */
  close(fd);
}

static void write_ring(const lt_world *w, int rank, const lt_pulse *pulse) {
  int fd = open_file(w, "ring.rank%d.jsonl", rank);
  if (fd < 0) return;
  lt_ring_write(pulse, fd);
  close(fd);
}

void lt_files_write(lt_world *w) {
  if (!w->may_write) return;
  const char *text = w->pulse->verdict.text;
  pthread_mutex_lock(&w->folder_mutex);
  if (mkdir(w->folder, 0755) == 0 || errno == EEXIST) {
    write_text(w, w->info.rank, text);
    write_ring(w, w->info.rank, w->pulse);
    /* Dead or stopped children cannot: their rings lie open here. */
    for (int r = 1; w->pulses != NULL && r < w->n_peers; r++)
      if ((w->peers[r].gone && !w->peers[r].told) || r == w->pulse->verdict.rank)
        write_ring(w, r, &w->pulses[r]);
  }
  pthread_mutex_unlock(&w->folder_mutex);
}
