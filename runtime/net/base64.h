/* runtime/net/base64.h: base64 (RFC 4648) with padding. */
#ifndef LT_NET_BASE64_H
#define LT_NET_BASE64_H

#include <stddef.h>

/* Write 4 characters for every 3 bytes begun. */
static inline size_t lt_base64_size(size_t n) { return (n + 2) / 3 * 4; }
void lt_base64_encode(const void *bytes, size_t n, char *text);

/* Decode into `bytes`, which has n / 4 * 3 of them: how many there are; SIZE_MAX of a text that is
   not base64. */
size_t lt_base64_decode(const char *text, size_t n, void *bytes);

#endif
