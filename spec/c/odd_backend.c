/* spec/c/odd_backend.c: backends that must be refused; ODD says in what way this one is odd. */
#include <stdio.h>

#include "ltrain/backend.h"

enum odd { VERSION = 1, OPS, COMM_VERSION, TABLE, REFUSES, NOTHING, NO_SYMBOL, NEEDS };

/* Of a library that is there when this is linked and gone when it is opened. */
void lt_odd_needed(void);

static const lt_comm_ops ops = {
    .size = sizeof(lt_comm_ops),
    .version = LT_COMM_VERSION + (ODD == COMM_VERSION),
    .name = "odd",
};

#if ODD == 7 /* NO_SYMBOL */
#define lt_backend_open lt_backend_opne
bool lt_backend_opne(const lt_host *, lt_backend *);
#endif
LT_API bool lt_backend_open(const lt_host *host, lt_backend *out) {
  out->version = LT_BACKEND_VERSION + (ODD == VERSION);
  out->op_hash = ODD == OPS ? host->op_hash + 1 : host->op_hash;
  out->comm = ODD == NOTHING ? NULL : &ops;
  if (ODD == REFUSES) snprintf(out->text, sizeof out->text, "no wire in the wall");
#if ODD == 8 /* NEEDS */
  lt_odd_needed();
#endif
  return ODD != REFUSES;
}
