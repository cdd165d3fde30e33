/* runtime/launch/control.c: channels between watchdogs over non-blocking sockets.

   A message is its length, a fixed head and a text. Unix sockets keep packets apart
   (SOCK_SEQPACKET); over TCP (`stream`) messages are cut out of the bytes as they arrive. Lengths
   are checked before they are trusted: anybody may connect to a port. */
#include "launch/control.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const size_t HEAD = offsetof(lt_message, text);

void lt_message_size(lt_message *m, size_t text_bytes) { m->bytes = (uint32_t)(HEAD + text_bytes); }

/* The last byte of a text is set to 0 where it is received: that of a `seq`, which has it so. */
void lt_message_set_issued(lt_message *m, const lt_issued_list *list) {
  size_t bytes = (size_t)list->n * sizeof *list->entries;
  memcpy(m->text, list->entries, bytes);
  lt_message_size(m, bytes);
}

int lt_message_get_issued(const lt_message *m, lt_issued *issued) {
  size_t n = (m->bytes - HEAD) / sizeof *issued;
  if (n > LT_ISSUED) n = LT_ISSUED;
  memcpy(issued, m->text, n * sizeof *issued);
  return (int)n;
}

void lt_message_text(lt_message *m, const char *text) {
  size_t n = strlen(text);
  if (n >= sizeof m->text) n = sizeof m->text - 1;
  memmove(m->text, text, n);
  m->text[n] = 0;
  lt_message_size(m, n + 1);
}

void lt_message_failure(lt_message *m, lt_message_kind kind, lt_outcome_class class, int rank,
                        int status, const char *text) {
  *m =
      (lt_message){.kind = (uint8_t)kind, .class = (uint8_t) class, .rank = rank, .status = status};
  lt_message_text(m, text);
}

void lt_channel_open(lt_channel *ch, int fd, bool stream) {
  ch->fd = fd;
  ch->stream = stream;
  ch->in_used = ch->out_used = 0;
}

void lt_channel_close(lt_channel *ch) {
  if (ch->fd >= 0) close(ch->fd);
  ch->fd = -1;
  ch->in_used = ch->out_used = 0;
}

/* How much of the queue one send may take: a packet is one message. */
static size_t next_piece(const lt_channel *ch) {
  if (ch->stream) return ch->out_used;
  uint32_t bytes;
  memcpy(&bytes, ch->out, sizeof bytes);
  return bytes;
}

void lt_channel_flush(lt_channel *ch) {
  while (ch->fd >= 0 && ch->out_used > 0) {
    ssize_t n = send(ch->fd, ch->out, next_piece(ch), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOTCONN)) return;
    if (n < 0) { /* receive finds the end, after what the other side sent before */
      ch->out_used = 0;
      return;
    }
    ch->out_used -= (uint32_t)n;
    memmove(ch->out, ch->out + n, ch->out_used);
  }
}

/* Never waits: what the socket does not take stays in the queue of the channel, since a watchdog
   must keep watching whatever the other side does. */
bool lt_channel_send(lt_channel *ch, const lt_message *m) {
  if (ch->fd < 0 || ch->out_used + m->bytes > sizeof ch->out) return false;
  memcpy(ch->out + ch->out_used, m, m->bytes);
  ch->out_used += m->bytes;
  lt_channel_flush(ch);
  return true;
}

/* One message from the front of `in`, if it is whole. */
static lt_received cut(lt_channel *ch, lt_message *m) {
  uint32_t bytes;
  if (ch->in_used < sizeof bytes) return LT_GOT_NOTHING;
  memcpy(&bytes, ch->in, sizeof bytes);
  if (bytes < HEAD || bytes > sizeof *m) return LT_GOT_END; /* not one of us */
  if (ch->in_used < bytes) return LT_GOT_NOTHING;
  memset(m->text, 0, 1);
  memcpy(m, ch->in, bytes);
  if (bytes > HEAD) ((char *)m)[bytes - 1] = 0;
  ch->in_used -= bytes;
  memmove(ch->in, ch->in + bytes, ch->in_used);
  return LT_GOT_MESSAGE;
}

static lt_received ended(lt_channel *ch) {
  lt_channel_close(ch);
  return LT_GOT_END;
}

lt_received lt_channel_receive(lt_channel *ch, lt_message *m) {
  for (;;) {
    if (ch->fd < 0) return LT_GOT_NOTHING;
    lt_received got = cut(ch, m);
    if (got == LT_GOT_MESSAGE) return got;
    if (got == LT_GOT_END || (!ch->stream && ch->in_used > 0)) return ended(ch);
    ssize_t n = recv(ch->fd, ch->in + ch->in_used, sizeof ch->in - ch->in_used, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == ENOTCONN)) return LT_GOT_NOTHING;
    if (n <= 0) return ended(ch);
    ch->in_used += (uint32_t)n;
  }
}
