/* runtime/launch/handshake.c: HMAC-SHA-256 over the challenges of both ends. */
#include "launch/handshake.h"

#include <string.h>
#include <sys/random.h>

#include "base/sha256.h"

/* The text of the three messages; receiving a message ends its text with a 0. */
typedef struct payload {
  unsigned char challenge[LT_CHALLENGE_BYTES], proof[LT_PROOF_BYTES], end;
} payload;

bool lt_random_bytes(void *bytes, size_t n) { return getrandom(bytes, n, 0) == (ssize_t)n; }

static void prove(const lt_handshake *h, bool coordinator, const unsigned char *token,
                  unsigned char proof[LT_PROOF_BYTES]) {
  unsigned char text[1 + sizeof *h] = {coordinator ? 'c' : 'w'};
  memcpy(text + 1, h, sizeof *h);
  lt_hmac_sha256(token, LT_TOKEN_BYTES, text, sizeof text, proof);
}

/* In the same time wherever they differ. */
static bool holds(const lt_handshake *h, bool coordinator, const unsigned char *token,
                  const unsigned char proof[LT_PROOF_BYTES]) {
  unsigned char right[LT_PROOF_BYTES], difference = 0;
  prove(h, coordinator, token, right);
  for (int i = 0; i < LT_PROOF_BYTES; i++) difference |= right[i] ^ proof[i];
  return difference == 0;
}

void lt_handshake_write(lt_message *m, lt_message_kind kind, const lt_handshake *h,
                        const unsigned char *token) {
  payload p = {.end = 0};
  if (kind == LT_MESSAGE_HELLO) memcpy(p.challenge, h->worker, sizeof p.challenge);
  if (kind == LT_MESSAGE_CHALLENGE) memcpy(p.challenge, h->coordinator, sizeof p.challenge);
  if (kind != LT_MESSAGE_HELLO) prove(h, kind == LT_MESSAGE_CHALLENGE, token, p.proof);
  *m = (lt_message){.kind = (uint8_t)kind, .rank = h->rank};
  memcpy(m->text, &p, sizeof p);
  lt_message_size(m, sizeof p);
}

bool lt_handshake_read(const lt_message *m, lt_message_kind kind, lt_handshake *h,
                       const unsigned char *token) {
  payload p;
  if (m->kind != kind || m->bytes != offsetof(lt_message, text) + sizeof p) return false;
  memcpy(&p, m->text, sizeof p);
  if (kind == LT_MESSAGE_CHALLENGE) memcpy(h->coordinator, p.challenge, sizeof h->coordinator);
  if (kind != LT_MESSAGE_HELLO) return holds(h, kind == LT_MESSAGE_CHALLENGE, token, p.proof);
  memcpy(h->worker, p.challenge, sizeof h->worker);
  h->rank = m->rank;
  return true;
}
