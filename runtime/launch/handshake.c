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

static void prove(const lt_handshake *h, bool hub, const unsigned char *token,
                  unsigned char proof[LT_PROOF_BYTES]) {
  unsigned char said[1 + sizeof *h] = {hub ? 'h' : 'l'};
  memcpy(said + 1, h, sizeof *h);
  lt_hmac_sha256(token, LT_TOKEN_BYTES, said, sizeof said, proof);
}

/* In the same time wherever they differ. */
static bool holds(const lt_handshake *h, bool hub, const unsigned char *token,
                  const unsigned char proof[LT_PROOF_BYTES]) {
  unsigned char right[LT_PROOF_BYTES], difference = 0;
  prove(h, hub, token, right);
  for (int i = 0; i < LT_PROOF_BYTES; i++) difference |= right[i] ^ proof[i];
  return difference == 0;
}

static void fill(lt_message *m, lt_message_kind kind, const lt_handshake *h, const payload *p) {
  *m = (lt_message){.kind = (uint8_t)kind, .rank = h->rank, .status = h->call};
  memcpy(m->text, p, sizeof *p);
  lt_message_size(m, sizeof *p);
}

static bool take(const lt_message *m, lt_message_kind kind, payload *p) {
  if (m->kind != kind || m->bytes != offsetof(lt_message, text) + sizeof *p) return false;
  memcpy(p, m->text, sizeof *p);
  return true;
}

void lt_say_hello(lt_message *m, const lt_handshake *h) {
  payload p = {.end = 0};
  memcpy(p.challenge, h->leaf, sizeof p.challenge);
  fill(m, LT_SAY_HELLO, h, &p);
}

bool lt_hear_hello(const lt_message *m, lt_handshake *h) {
  payload p;
  if (!take(m, LT_SAY_HELLO, &p)) return false;
  h->rank = m->rank;
  h->call = m->status;
  memcpy(h->leaf, p.challenge, sizeof h->leaf);
  return true;
}

void lt_say_challenge(lt_message *m, const lt_handshake *h, const unsigned char *token) {
  payload p = {.end = 0};
  memcpy(p.challenge, h->hub, sizeof p.challenge);
  prove(h, true, token, p.proof);
  fill(m, LT_SAY_CHALLENGE, h, &p);
}

bool lt_hear_challenge(const lt_message *m, lt_handshake *h, const unsigned char *token) {
  payload p;
  if (!take(m, LT_SAY_CHALLENGE, &p)) return false;
  memcpy(h->hub, p.challenge, sizeof h->hub);
  return holds(h, true, token, p.proof);
}

void lt_say_proof(lt_message *m, const lt_handshake *h, const unsigned char *token) {
  payload p = {.end = 0};
  prove(h, false, token, p.proof);
  fill(m, LT_SAY_PROOF, h, &p);
}

bool lt_hear_proof(const lt_message *m, const lt_handshake *h, const unsigned char *token) {
  payload p;
  return take(m, LT_SAY_PROOF, &p) && holds(h, false, token, p.proof);
}
