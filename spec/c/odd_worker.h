/* spec/c/odd_worker.h: what odd_worker sends. */
#ifndef LT_SPEC_ODD_WORKER_H
#define LT_SPEC_ODD_WORKER_H

enum {
  ODD_OPEN = 1, ODD_KIND, ODD_LENGTH, ODD_SHORT, ODD_LONG, ODD_DTYPE, ODD_DIMS, ODD_NEGATIVE,
  ODD_LARGE, ODD_TEXT, ODD_EVENT, ODD_INVALID_END, /* before: messages that are invalid */
  ODD_CUT, ODD_CRASH, ODD_FLOOD, ODD_BOOLEAN, ODD_DEAF
};

#endif
