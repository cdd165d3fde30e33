/* runtime/io/inbox.h: messages from other processes of the same user, by a Unix socket in a folder.

   Who owns the inbox asks it when that suits, and never waits: with nothing there it is one call
   of the system. The socket has the mode 0600. */
#ifndef LT_IO_INBOX_H
#define LT_IO_INBOX_H

#include "base/ctx.h"

enum { LT_INBOX_WORD = 16 };

/* Open folder/name; -1 with a failure, also where another process listens there. What a process
   left that is gone is replaced. */
int lt_inbox_open(lt_ctx *c, const char *op, const char *folder, const char *name);

/* The next word; false: none has come. Those of other users are dropped. */
bool lt_inbox_take(int fd, char word[LT_INBOX_WORD]);

/* The name goes too. */
void lt_inbox_close(int fd, const char *folder, const char *name);

/* Send a word (shorter than LT_INBOX_WORD; NULL: only look) to `name` in the folder `path` below
   `root`, where no link may lead (io/confined_files.h); fails where nobody listens. */
bool lt_inbox_send(lt_ctx *c, const char *op, const char *root, const char *path,
                   const char *name, const char *word);

#endif
