/* spec/c/odd_worker.c: what host_isolate_test starts in place of ltrain-worker: the limit of
   instructions chooses which nonsense it sends. */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "odd_worker.h"

static void receive(void *to, size_t n) {
  for (size_t got = 0; got < n;) {
    ssize_t part = read(3, (char *)to + got, n - got);
    if (part <= 0) _exit(0);
    got += (size_t)part;
  }
}

static void send_bytes(const void *bytes, size_t n) {
  if (write(3, bytes, n) < 0) _exit(0);
}

static void send_message(char kind, uint64_t length, const void *bytes, size_t n) {
  char head[9] = {kind};
  memcpy(head + 1, &length, 8);
  send_bytes(head, 9);
  send_bytes(bytes, n);
}

/* Returns the limit of instructions, if it is the first request: behind the version. */
static int64_t receive_request(void) {
  char head[9], body[4096];
  uint64_t length;
  int64_t number = 0;
  receive(head, 9);
  memcpy(&length, head + 1, 8);
  if (length > sizeof body) _exit(1);
  receive(body, length);
  if (length >= 24) memcpy(&number, body + length - 24, 8);
  return number;
}

static void send_tensor(int64_t dtype, int64_t ndim, int64_t size) {
  const int64_t numbers[] = {dtype, ndim, size, 0};
  send_message('d', sizeof numbers, numbers, sizeof numbers);
}

int main(void) {
  int64_t mode = receive_request();
  char zeros[4096] = {0};
  if (mode == ODD_OPEN) send_message('?', 0, "", 0);
  send_message('d', 0, "", 0);
  receive_request();
  switch (mode) {
  case ODD_KIND:
    send_message('?', 0, "", 0);
    break;
  case ODD_LENGTH:
    send_message('d', UINT64_MAX, "", 0);
    break;
  case ODD_SHORT:
    send_message('d', 4, "abcd", 4);
    break;
  case ODD_LONG:
    send_message('d', 4096, zeros, 4096);
    break;
  case ODD_CUT:
    send_message('d', 4096, zeros, 100);
    _exit(7);
  case ODD_DTYPE:
    send_tensor(1000, 1, 2);
    break;
  case ODD_DIMS:
    send_tensor(0, 1 << 20, 2);
    break;
  case ODD_NEGATIVE:
    send_tensor(0, 1, -1);
    break;
  case ODD_LARGE:
    send_tensor(0, 1, INT64_MAX / 8);
    break;
  case ODD_TEXT:
    send_message('f', 8, "\xff\xff\xff\xff\xff\xff\xff\x7f", 8);
    break;
  case ODD_EVENT:
    send_message('l', 8, zeros, 8);
    break;
  case ODD_FLOOD:
    for (;;) send_message('p', 13, "\4\0\0\0\0\0\0\0text", 13);
  case ODD_BOOLEAN: {
    const int64_t numbers[] = {7, 1, 8, -1}; /* eight elements of 255 */
    send_message('d', sizeof numbers, numbers, sizeof numbers);
    break;
  }
  case ODD_CRASH:
    raise(SIGKILL); /* sanitizers catch the others */
    break;
  case ODD_DEAF:
    for (;;) pause();
  default:
    break;
  }
  receive_request();
  return 0;
}
