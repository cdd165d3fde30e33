/* spec/bench/slow_links/relay.c: the link between two hosts that are network namespaces: it carries
   packets from a TUN device in the one to a TUN device in the other, at a rate and with a delay.

     relay NAMESPACE NAMESPACE MBIT_PER_SECOND MILLISECONDS_ONE_WAY

   In place of tc's netem, which few kernels have. The device is eth0 in both. A packet leaves when
   those before it have left at the rate, and arrives the delay later; behind QUEUE seconds of
   packets that wait, further ones are dropped, as a router does. It runs before everything else
   (SCHED_FIFO), so that the link does not depend on what else the machine does. Runs until it is
   killed; prints a line when both devices are there. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { PACKET = 1600, SLOTS = 16384 };
static const double QUEUE = 0.5;

typedef struct packet {
  double due;
  ssize_t size;
  char bytes[PACKET];
} packet;

/* One way. The reader fills slots, the writer empties them. */
typedef struct way {
  int from, to;
  double rate, delay, free_at; /* bytes a second, seconds, when the wire is free */
  packet *slots;
  long first, last; /* numbers of packets */
  pthread_mutex_t lock;
  pthread_cond_t added;
} way;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_until(double due) {
  struct timespec t = {.tv_sec = (time_t)due};
  t.tv_nsec = (long)((due - (double)t.tv_sec) * 1e9);
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static int open_device(const char *name) {
  char path[256];
  snprintf(path, sizeof path, "/run/netns/%s", name);
  int space = open(path, O_RDONLY);
  if (space < 0 || setns(space, CLONE_NEWNET) != 0) fail(name);
  int device = open("/dev/net/tun", O_RDWR); /* of the namespace that the thread is in now */
  if (device < 0) fail("/dev/net/tun");
  struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
  strcpy(request.ifr_name, "eth0");
  if (ioctl(device, TUNSETIFF, &request) != 0) fail("TUNSETIFF");
  close(space);
  return device;
}

static void *read_packets(void *data) {
  way *w = data;
  for (;;) {
    packet *p = &w->slots[w->last % SLOTS];
    p->size = read(w->from, p->bytes, PACKET);
    if (p->size <= 0) continue;
    double time = now();
    if (w->free_at < time) w->free_at = time;
    pthread_mutex_lock(&w->lock);
    if (w->free_at - time < QUEUE && w->last - w->first < SLOTS - 1) {
      w->free_at += (double)p->size / w->rate;
      p->due = w->free_at + w->delay;
      w->last++;
      pthread_cond_signal(&w->added);
    }
    pthread_mutex_unlock(&w->lock);
  }
}

static void *write_packets(void *data) {
  way *w = data;
  for (;;) {
    pthread_mutex_lock(&w->lock);
    while (w->first == w->last) pthread_cond_wait(&w->added, &w->lock);
    pthread_mutex_unlock(&w->lock);
    packet *p = &w->slots[w->first % SLOTS];
    sleep_until(p->due);
    if (write(w->to, p->bytes, (size_t)p->size) != p->size) perror("write");
    pthread_mutex_lock(&w->lock);
    w->first++;
    pthread_mutex_unlock(&w->lock);
  }
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  int a = open_device(argv[1]), b = open_device(argv[2]);
  pthread_t threads[4];
  static way ways[2];
  if (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1}) != 0)
    perror("SCHED_FIFO");
  for (int i = 0; i < 2; i++) {
    way *w = &ways[i];
    *w = (way){.from = i == 0 ? a : b, .to = i == 0 ? b : a, .rate = atof(argv[3]) * 1e6 / 8,
               .delay = atof(argv[4]) * 1e-3, .slots = malloc(SLOTS * sizeof(packet))};
    if (w->slots == NULL) fail("memory");
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->added, NULL);
    pthread_create(&threads[2 * i], NULL, read_packets, w);
    pthread_create(&threads[2 * i + 1], NULL, write_packets, w);
  }
  puts("ready");
  fflush(stdout);
  pthread_join(threads[0], NULL);
  return 0;
}
