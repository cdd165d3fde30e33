/* runtime/launch/failure_files.c: the failure report as files, for when stderr is a broken pipe.

   failure.rank<N>.txt is the message, ring.rank<N>.jsonl the last collectives of the rank: what
   `ltrain diagnose` reads. Written by watchdogs: open and write alone. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/world.h"

/* Open the folder, made if it is not there; -1 when that fails. The default folder must belong to
   this user (another rank may have made it): in a folder into which other users can write, its name
   could be a link to anywhere. */
static int open_folder(const lt_watchdog *d) {
  int own = d->mail->names_folder ? O_NOFOLLOW : 0;
  if (mkdir(d->mail->folder, d->mail->names_folder ? 0700 : 0755) != 0 && errno != EEXIST)
    return -1;
  int folder = open(d->mail->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | own);
  struct stat there;
  if (folder < 0 || !d->mail->names_folder) return folder;
  if (fstat(folder, &there) == 0 && there.st_uid == geteuid()) return folder;
  close(folder);
  return -1;
}

/* A new file: what has its name goes, and is never followed. */
static int open_file(int folder, const char *form, int rank) {
  char name[64];
  snprintf(name, sizeof name, form, rank);
  unlinkat(folder, name, 0);
  return openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
}

static void write_text(int folder, int rank, const char *text) {
  int fd = open_file(folder, "failure.rank%d.txt", rank);
  if (fd < 0) return;
  char line[LT_OUTCOME_TEXT + 1];
  size_t n = (size_t)snprintf(line, sizeof line, "%s\n", text);
  ssize_t done = write(fd, line, n);
  (void)done; /* a full disk: stderr has it too */
  close(fd);
}

static void write_ring(int folder, int rank, const lt_heartbeat *heartbeat) {
  int fd = open_file(folder, "ring.rank%d.jsonl", rank);
  if (fd < 0) return;
  lt_ring_write(heartbeat, fd);
  close(fd);
}

/* Whether the launch's error says it all: an error of the script on one rank, which is raised where
   the ranks were forked (a folder of its own for each would only be in the way); or an interrupt
   that all ranks agreed on, and that is saved (stdlib/core/interrupt.lua): no failure. */
static bool is_told(const lt_watchdog *d) {
  static const char saved[] = "interrupted: saved ";
  const lt_outcome *v = &d->heartbeat->outcome;
  if (v->class == LT_INTERRUPTED && strncmp(v->text, saved, sizeof saved - 1) == 0) return true;
  return d->mail->names_folder && d->info->forked && v->class == LT_RAISED && v->rank >= 0;
}

void lt_files_write(lt_watchdog *d) {
  if (!d->world->may_write || is_told(d)) return;
  const char *text = d->heartbeat->outcome.text;
  pthread_mutex_lock(&d->mail->folder_lock);
  int folder = open_folder(d);
  if (folder >= 0) {
    write_text(folder, d->info->rank, text);
    write_ring(folder, d->info->rank, d->heartbeat);
    /* Dead or stopped children cannot: their rings lie open here. */
    for (int r = 1; d->world->heartbeats != NULL && r < d->n_peers; r++)
      if ((d->peers[r].exited && !d->peers[r].reported) || r == d->heartbeat->outcome.rank)
        write_ring(folder, r, &d->world->heartbeats[r]);
    close(folder);
  }
  pthread_mutex_unlock(&d->mail->folder_lock);
}
