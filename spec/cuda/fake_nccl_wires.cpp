/* spec/cuda/fake_nccl_wires.cpp: bytes between the ranks of a fake communicator (fake_nccl.h). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "cuda/fake_nccl.h"

static const uint64_t MAGIC = 0x6c6363206e656b61;
enum { ROOM = 1 << 18 };

struct Channel {
  std::atomic<uint64_t> written, read; /* bytes so far */
  char bytes[ROOM];
};

struct Segment {
  uint64_t magic;
  int n;
  std::atomic<int> joined;
  int device[FAKE_NCCL_RANKS];
  char path[FAKE_NCCL_ID];
  Channel channels[FAKE_NCCL_RANKS][FAKE_NCCL_RANKS]; /* from, to */
};

bool wires_make(char id[FAKE_NCCL_ID]) {
  const char *folder = getenv("TMPDIR");
  memset(id, 0, FAKE_NCCL_ID);
  snprintf(id, FAKE_NCCL_ID, "%s/fake_nccl.XXXXXX", folder != nullptr ? folder : "/tmp");
  int fd = mkstemp(id);
  if (fd < 0) return false;
  bool ok = ftruncate(fd, sizeof(Segment)) == 0 && pwrite(fd, &MAGIC, sizeof MAGIC, 0) > 0;
  close(fd);
  return ok;
}

Segment *wires_join(const char id[FAKE_NCCL_ID], int n, int rank, int device) {
  int fd = id[FAKE_NCCL_ID - 1] == '\0' ? open(id, O_RDWR) : -1;
  if (fd < 0) return nullptr;
  void *p = mmap(nullptr, sizeof(Segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  Segment *s = static_cast<Segment *>(p);
  if (p == MAP_FAILED || s->magic != MAGIC) return nullptr;
  memcpy(s->path, id, FAKE_NCCL_ID);
  s->n = n;
  s->device[rank] = device;
  s->joined++;
  return s;
}

bool wires_all_there(Segment *s) {
  if (s->joined < s->n) return false;
  unlink(s->path);
  return true;
}

int wires_device(const Segment *s, int rank) { return s->device[rank]; }

/* Up to n bytes of the wire's kind and data, from `done` on; returns how many. */
static size_t put(Channel *c, const char *from, size_t n) {
  uint64_t at = c->written;
  n = std::min<size_t>(n, ROOM - (at - c->read));
  for (size_t k = 0; k < n;) {
    size_t place = (at + k) % ROOM, part = std::min<size_t>(n - k, ROOM - place);
    memcpy(c->bytes + place, from + k, part);
    k += part;
  }
  c->written = at + n;
  return n;
}

static size_t take(Channel *c, char *to, size_t n) {
  uint64_t at = c->read;
  n = std::min<size_t>(n, c->written - at);
  for (size_t k = 0; k < n;) {
    size_t place = (at + k) % ROOM, part = std::min<size_t>(n - k, ROOM - place);
    memcpy(to + k, c->bytes + place, part);
    k += part;
  }
  c->read = at + n;
  return n;
}

static bool is_done(const Wire &w) { return w.done == w.bytes + sizeof w.kind; }

/* True when something moved. */
static bool advance(Segment *s, int rank, Wire &w) {
  Channel *c = &s->channels[w.sends ? rank : w.peer][w.sends ? w.peer : rank];
  if (w.done < sizeof w.kind) { /* whole: a channel's room is a multiple of it */
    uint64_t kind = w.kind;
    if (w.sends ? ROOM - (c->written - c->read) < sizeof kind : c->written - c->read < sizeof kind)
      return false;
    char *bytes = reinterpret_cast<char *>(&kind);
    w.done += w.sends ? put(c, bytes, sizeof kind) : take(c, bytes, sizeof kind);
    if (kind == w.kind) return true;
    fprintf(stderr, "fake nccl: ranks %d and %d call different operations, or with other counts\n",
            rank, w.peer);
    abort();
  }
  char *data = w.data + (w.done - sizeof w.kind);
  size_t left = w.bytes + sizeof w.kind - w.done;
  size_t n = w.sends ? put(c, data, left) : take(c, data, left);
  w.done += n;
  return n > 0;
}

bool wires_run(Segment *s, int rank, std::vector<Wire> &wires, const std::atomic<bool> &stop) {
  for (int idle = 0; !stop;) {
    bool busy[2][FAKE_NCCL_RANKS] = {};
    bool all = true, moved = false;
    for (Wire &w : wires) {
      bool &before = busy[w.sends][w.peer];
      if (is_done(w) || before) continue;
      moved |= advance(s, rank, w);
      before = !is_done(w);
      all = all && !before;
    }
    if (all && !moved) return true;
    idle = moved ? 0 : idle + 1;
    if (idle > 20) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return false;
}
