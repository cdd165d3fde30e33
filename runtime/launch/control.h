/* runtime/launch/control.h: messages between watchdogs, and the channels that carry them.

   The control channel is apart from the data: a SOCK_SEQPACKET pair for a forked child, whose exit
   is seen as end of file, or TCP to rank 0. Sending and receiving never allocate or block: each
   channel has its buffers, and lt_channel_send returns false when they are full. */
#ifndef LT_LAUNCH_CONTROL_H
#define LT_LAUNCH_CONTROL_H

#include <poll.h>

#include "comm/heartbeat.h"

typedef enum lt_message_kind {
  LT_MESSAGE_HELLO,     /* worker, over TCP: its rank, a challenge */
  LT_MESSAGE_CHALLENGE, /* coordinator: its proof, and a challenge of its own (handshake.h) */
  LT_MESSAGE_PROOF,     /* worker: its proof */
  LT_MESSAGE_READY,     /* coordinator: all ranks are connected */
  LT_MESSAGE_HEARTBEAT, /* both, once a second: what the rank does; text: lt_issued */
  LT_MESSAGE_REPORT,    /* worker: a failure, before it unwinds */
  LT_MESSAGE_LEFT,      /* worker: it left the loop or the script; text: lt_issued, completed */
  LT_MESSAGE_ALL_LEFT,
  LT_MESSAGE_LOCATE,  /* coordinator, to a rank that others wait for: what is its line? */
  LT_MESSAGE_WARN,    /* coordinator, to the rank that prints: text */
  LT_MESSAGE_OUTCOME, /* coordinator; a worker that decided alone sends its own */
  LT_MESSAGE_DONE,    /* worker: unwound, from now on its end is not a failure */
  LT_MESSAGE_ALL_DONE /* coordinator */
} lt_message_kind;

/* The state of a rank's main thread, as its watchdog sends it. */
typedef struct lt_state {
  lt_mark mark;
  uint64_t progress;
  int64_t waiting_since_ns; /* in the rank's own clock: only compared with itself */
  uint64_t waiting_for[LT_COMM_MAX_RANKS / 64];
  int32_t declared, saving;
  int32_t unused;
  int32_t lowest; /* from rank 0: the lowest other rank that it receives from, -1 when none */
} lt_state;

typedef struct lt_message {
  uint32_t bytes; /* that are sent: the header and the used part of `text` */
  uint8_t kind;   /* lt_message_kind */
  uint8_t class;  /* lt_outcome_class */
  uint16_t unused;
  int32_t rank; /* sender; in outcomes the rank that is named */
  int32_t status; /* of the job */
  lt_state state;
  char text[LT_OUTCOME_TEXT];
} lt_message;

/* Set `bytes` for `text_bytes` of text. */
void lt_message_size(lt_message *m, size_t text_bytes);
/* Set the text to a list of lt_issued; get the list, returns its length. */
void lt_message_set_issued(lt_message *m, const lt_issued_list *list);
int lt_message_get_issued(const lt_message *m, lt_issued *issued);
/* Set the text, with a 0 at its end; make a message of a failure, REPORT or OUTCOME. */
void lt_message_text(lt_message *m, const char *text);
void lt_message_failure(lt_message *m, lt_message_kind kind, lt_outcome_class class, int rank,
                        int status, const char *text);

typedef struct lt_channel {
  int fd;      /* -1: none */
  bool stream; /* TCP: messages are separated by their lengths */
  uint32_t in_used, out_used;
  unsigned char in[sizeof(lt_message)];
  unsigned char out[3 * sizeof(lt_message)];
} lt_channel;

void lt_channel_open(lt_channel *ch, int fd, bool stream);
void lt_channel_close(lt_channel *ch);
static inline bool lt_channel_is_open(const lt_channel *ch) { return ch->fd >= 0; }
static inline bool lt_channel_is_full(const lt_channel *ch) { return ch->out_used > 0; }
static inline struct pollfd lt_channel_poll(const lt_channel *ch) { /* a descriptor of -1 is none */
  return (struct pollfd){.fd = ch->fd, .events = ch->out_used > 0 ? POLLIN | POLLOUT : POLLIN};
}

/* Queue a message and send as much as possible; false when the buffer is full or the channel is
   closed. */
bool lt_channel_send(lt_channel *ch, const lt_message *m);
/* Send what is queued. A broken channel is closed by the next receive. */
void lt_channel_flush(lt_channel *ch);

typedef enum lt_received { LT_GOT_NOTHING, LT_GOT_MESSAGE, LT_GOT_END } lt_received;
/* Take the next message. After LT_GOT_END the channel is closed. Texts are ended by 0. */
lt_received lt_channel_receive(lt_channel *ch, lt_message *m);

#endif
