/* runtime/launch/control.h: messages between watchdogs, and the channels that carry them.

   The control channel is apart from the data: a SOCK_SEQPACKET pair for a forked child, whose end
   is an end of file, or TCP to rank 0. Watchdogs use it without allocating: each channel has its
   buffers, never blocks, and reports when it has no room. */
#ifndef LT_LAUNCH_CONTROL_H
#define LT_LAUNCH_CONTROL_H

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
  LT_MESSAGE_WARN,    /* coordinator, to the rank that may print: text */
  LT_MESSAGE_VERDICT, /* coordinator; a worker that judged by itself sends its own */
  LT_MESSAGE_DONE,    /* worker: nothing more to unwind, its end is no failure any more */
  LT_MESSAGE_ALL_DONE /* coordinator */
} lt_message_kind;

/* What a watchdog knows of its rank's main thread. */
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
  uint32_t bytes; /* sent: the head and as much of `text` as is used */
  uint8_t kind;   /* lt_message_kind */
  uint8_t class;  /* lt_verdict_class */
  uint16_t unused;
  int32_t rank; /* sender; in verdicts the rank that is named */
  int32_t status; /* of the job */
  lt_state state;
  char text[LT_VERDICT_TEXT];
} lt_message;

/* Set `bytes` for `text_bytes` of text. */
void lt_message_size(lt_message *m, size_t text_bytes);
/* The same for a text of lt_issued; how many a message has. */
void lt_message_set_issued(lt_message *m, const lt_issued_list *list);
int lt_message_get_issued(const lt_message *m, lt_issued *issued);
/* A message with a text that ends in 0. */
void lt_message_text(lt_message *m, const char *text);

typedef struct lt_channel {
  int fd;      /* -1: none */
  bool stream; /* TCP: messages are cut by their lengths */
  uint32_t in_used, out_used;
  unsigned char in[sizeof(lt_message)];
  unsigned char out[3 * sizeof(lt_message)];
} lt_channel;

void lt_channel_open(lt_channel *ch, int fd, bool stream);
void lt_channel_close(lt_channel *ch);
static inline bool lt_channel_is_open(const lt_channel *ch) { return ch->fd >= 0; }
static inline bool lt_channel_is_full(const lt_channel *ch) { return ch->out_used > 0; }

/* Queue a message and send what the system takes; false when there is no room or no channel. */
bool lt_channel_send(lt_channel *ch, const lt_message *m);
/* Send what is queued. A broken channel is closed by the next receive. */
void lt_channel_flush(lt_channel *ch);

typedef enum lt_received { LT_GOT_NOTHING, LT_GOT_MESSAGE, LT_GOT_END } lt_received;
/* Take the next message. After LT_GOT_END the channel is closed. Texts are ended by 0. */
lt_received lt_channel_receive(lt_channel *ch, lt_message *m);

#endif
