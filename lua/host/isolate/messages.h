/* lua/host/isolate/messages.h: messages between a host and the worker process of an isolated state.

   A message is a kind (1 byte), a length (8 bytes) and as many bytes. Values have no tags: both
   sides know the letters of the call, so that the host reads what it has asked for or refuses all
   of it. Bytes of tensors are part of the message: the worker needs no call that makes or passes a
   descriptor. */
#ifndef LT_HOST_ISOLATE_MESSAGES_H
#define LT_HOST_ISOLATE_MESSAGES_H

#include <lua.h>

#include "bind/core/state.h"

/* Requests: each is answered by DONE or FAILED. */
enum {
  LT_WIRE_OPEN = 'O',     /* version, limits, events */
  LT_WIRE_RUN = 'R',      /* name, code */
  LT_WIRE_RUN_FILE = 'F', /* path in memory */
  LT_WIRE_CALL = 'C',     /* name, format, arguments; DONE has the results */
  LT_WIRE_GET = 'G',      /* name, format; DONE has the value */
  LT_WIRE_SET = 'S',      /* name, format, value */
  LT_WIRE_PUT_FILE = 'P', /* path, bytes */
  LT_WIRE_READ_FILE = 'B', /* path; DONE has the bytes */
  LT_WIRE_REMOVE_FILE = 'X',
  LT_WIRE_DONE = 'd',
  LT_WIRE_FAILED = 'f', /* why */
  /* Before an answer, any number of: */
  LT_WIRE_LOG = 'l',     /* level, text */
  LT_WIRE_PRINT = 'p',   /* text */
  LT_WIRE_PROGRESS = 'g' /* stage, epoch, batch, batches */
};

enum { LT_WIRE_LOGS = 1, LT_WIRE_PRINTS = 2, LT_WIRE_PROGRESSES = 4 }; /* events of OPEN */

/* A message that is written or has been read. */
typedef struct lt_wire {
  char *data;
  size_t size, capacity;
  size_t at; /* bytes of it that have been taken */
  bool bad;  /* no memory for more, or less there than was to be taken */
} lt_wire;

typedef enum lt_wire_status {
  LT_WIRE_OK, LT_WIRE_ENDED, LT_WIRE_LATE, LT_WIRE_INVALID, LT_WIRE_NO_MEMORY
} lt_wire_status;

void lt_wire_free(lt_wire *w);

void lt_wire_begin(lt_wire *w, char kind);
void lt_wire_put(lt_wire *w, const void *bytes, size_t n);
void lt_wire_put_integer(lt_wire *w, int64_t value);
void lt_wire_put_text(lt_wire *w, const char *text, size_t n); /* NULL: nil */
/* The value at `index`, which lt_check_result has checked. Raises. */
void lt_wire_put_value(lua_State *L, lt_bind *b, lt_wire *w, int index, char letter);

char lt_wire_kind(const lt_wire *w);
/* The next bytes; NULL: there are not as many. */
const char *lt_wire_take(lt_wire *w, size_t n);
int64_t lt_wire_take_integer(lt_wire *w);
/* The next text, which ends with a 0 behind its `n` bytes; NULL: nil, or it is bad. */
const char *lt_wire_take_text(lt_wire *w, size_t *n);
/* Push the next value. Raises. */
void lt_wire_push_value(lua_State *L, lt_bind *b, lt_wire *w, char letter);
/* Whether all of it has been taken, and nothing was missing. */
bool lt_wire_is_complete(const lt_wire *w);

/* Both wait until `deadline` (seconds of lt_seconds_now; 0: for ever). A message of more than
   `most` bytes is invalid. */
lt_wire_status lt_wire_send(int fd, lt_wire *w, double deadline);
lt_wire_status lt_wire_receive(int fd, lt_wire *w, size_t most, double deadline);

#endif
