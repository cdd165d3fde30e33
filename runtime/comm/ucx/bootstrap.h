/* runtime/comm/ucx/bootstrap.h: how ranks that know rank 0's address, or a file that has it, and
   nothing else of each other, exchange theirs: over TCP, once, before the first message of UCX.

   Rank 0 listens. Each of the others says who it is; rank 0 answers at once, whether it may come
   in, and when all are there a second time: with everybody's address, or why that did not happen.

   The token keeps jobs apart that meet at one port. It is no secret: the network is trusted, as it
   is by UCX's own connections. */
#ifndef LT_COMM_UCX_BOOTSTRAP_H
#define LT_COMM_UCX_BOOTSTRAP_H

#include <stdint.h>

#include "comm/ucx/link.h"

enum { LT_BOOTSTRAP_HOST = 64, LT_BOOTSTRAP_ADDRESS = 65536, LT_BOOTSTRAP_HOSTS = 2048 };

/* What a rank says; address_bytes of its UCX address follow. */
typedef struct lt_bootstrap_hello {
  char magic[8];
  uint64_t token; /* a hash of it */
  int32_t rank, size, pid;
  uint32_t address_bytes;
  char host[LT_BOOTSTRAP_HOST];
} lt_bootstrap_hello;

typedef enum lt_bootstrap_outcome {
  LT_BOOTSTRAP_WAIT,     /* come in */
  LT_BOOTSTRAP_STRANGER, /* of another job: look elsewhere */
  LT_BOOTSTRAP_REFUSED,  /* `bytes` of text follow */
  LT_BOOTSTRAP_ALL /* `bytes` follow: of each rank a uint32_t, and so many bytes of its address */
} lt_bootstrap_outcome;

typedef struct lt_bootstrap_answer {
  char magic[8];
  uint32_t outcome, bytes;
} lt_bootstrap_answer;

#define LT_BOOTSTRAP_MAGIC "ltrain2\n"

/* Where rank 0 listens: on the first free one of these ports; or, with a file, on any, which it
   writes there with its addresses. */
typedef struct lt_bootstrap_place {
  const char *file; /* NULL: none */
  char host[256];
  int first, last;
  int64_t deadline_ns;
  const char *token;
} lt_bootstrap_place;

/* bootstrap_wire.c */
int64_t lt_bootstrap_now(void);
/* Milliseconds until then, at most `most`; 0: it is over. */
int lt_bootstrap_left(int64_t deadline_ns, int most);
void lt_bootstrap_hello_of(const lt_ucx_world *w, const lt_bootstrap_place *at,
                           lt_bootstrap_hello *out);

/* All n bytes, before the deadline. */
bool lt_bootstrap_send(int fd, const void *bytes, size_t n, int64_t deadline_ns);
bool lt_bootstrap_receive(int fd, void *bytes, size_t n, int64_t deadline_ns);

/* file.c: rank 0 has begun to listen on this port: all others may know. */
bool lt_bootstrap_file_write(const lt_bootstrap_place *at, int port, char *text);
/* LT_DONE: the port, and the addresses separated by commas. LT_PENDING: there are none of this job
   yet; `text` says why. */
lt_progress lt_bootstrap_file_read(const lt_bootstrap_place *at, char hosts[LT_BOOTSTRAP_HOSTS],
                                   int *port, char *text);
/* Rank 0 no longer listens there. */
void lt_bootstrap_file_remove(const lt_bootstrap_place *at, int port);

/* accept.c: rank 0. connect.c: the others. *all: LT_BOOTSTRAP_ALL's bytes, the caller's. */
bool lt_bootstrap_collect(const lt_ucx_world *w, const lt_bootstrap_place *at, char **all,
                          size_t *bytes, char *text);
bool lt_bootstrap_dial(const lt_ucx_world *w, const lt_bootstrap_place *at, char **all,
                       size_t *bytes, char *text);

#endif
