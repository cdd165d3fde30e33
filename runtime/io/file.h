/* runtime/io/file.h: files, through one table of calls, and saving that never loses the former
   file.

   Every call into the file system goes through `lt_file_ops`, so that specs can make the n-th one
   fail. A save goes to a temporary name in the same folder, is synced, renamed over the old file,
   and the folder is synced: at each moment the path holds the former file or the new one, whole. */
#ifndef LT_IO_FILE_H
#define LT_IO_FILE_H

#include <sys/stat.h>
#include <sys/types.h>

#include "base/ctx.h"

/* As the system's calls of the same names: -1 and errno on failure. */
typedef struct lt_file_ops {
  int (*open)(const char *path, int flags, mode_t mode);
  ssize_t (*read)(int fd, void *buffer, size_t n);
  ssize_t (*pread)(int fd, void *buffer, size_t n, off_t offset);
  ssize_t (*write)(int fd, const void *data, size_t n);
  int (*ftruncate)(int fd, off_t size);
  int (*fsync)(int fd);
  int (*close)(int fd);
  int (*fstat)(int fd, struct stat *out);
  int (*stat)(const char *path, struct stat *out);
  int (*rename)(const char *from, const char *to);
  /* Make each of two paths the other's, at once; NULL or -1 where that cannot be. (optional) */
  int (*exchange)(const char *a, const char *b);
  int (*link)(const char *from, const char *to);
  int (*symlink)(const char *target, const char *path);
  int (*unlink)(const char *path);
  int (*rmdir)(const char *path);
  int (*mkdir)(const char *path, mode_t mode);
  int (*access)(const char *path, int mode);
  /* n bytes of a file as private memory (copy on write); NULL where that cannot be. (optional) */
  void *(*map)(int fd, size_t n);
  /* Call each(ud, name) for every entry but "." and ".."; each stops it by returning false. */
  int (*list)(const char *folder, bool (*each)(void *ud, const char *name), void *ud);
} lt_file_ops;

extern const lt_file_ops lt_system_files;

/* The table in use: the root ctx's, or the system's. */
const lt_file_ops *lt_files(const lt_ctx *c);

/* In all that follows `op` begins the error text ("load: cannot open a.st: No such file"); the
   ctx's policy is asked first. */

/* Open a plain file for reading, and its size; -1 with a failure in the ctx. A folder, a pipe or a
   device is refused: opening a pipe would wait for a writer. lt_file_close ignores errors: reading
   is done. */
int lt_file_open(lt_ctx *c, const char *op, const char *path, int64_t *size);
void lt_file_close(lt_ctx *c, int fd);

/* Whether reading a path could wait for ever: a pipe or a device that is not, by its name, a
   descriptor of the process (lt_file_load). */
bool lt_file_may_wait(const char *path);

/* Exactly n bytes from `offset`; a file that ends before fails. */
bool lt_file_read_at(lt_ctx *c, const char *op, const char *path, int fd, void *out, size_t n,
                     int64_t offset);

/* A whole plain file of at most `limit` bytes, with a NUL after it; free it with
   lt_free(c, data, *size + 1). Its size is checked before it is read. A pipe or a terminal is read
   only where the path names a descriptor of the process: /dev/stdin, and what a shell gives for
   <(command). */
char *lt_file_load(lt_ctx *c, const char *op, const char *path, size_t limit, size_t *size);

/* A file that is being saved. Open, write as often as needed, then commit, which ends it: it gives
   the temporary up when anything failed, and works on one whose open failed. */
enum { LT_PATH_MAX = 4096 };
typedef struct lt_saving {
  const char *op, *path; /* the caller's, valid until the end */
  char temporary[LT_PATH_MAX];
  int fd; /* -1: not open */
  char *buffer; /* the bytes so far of a file in memory (io/memory_files.h) */
  size_t buffer_size, buffer_capacity;
} lt_saving;

/* Remove temporaries in a folder whose process, of this host, has died: as lt_saving_open does. */
bool lt_saving_remove_stale(lt_ctx *c, const char *op, const char *folder);

/* Also removes temporaries in the folder whose process has died. */
bool lt_saving_open(lt_ctx *c, lt_saving *s, const char *op, const char *path);
bool lt_saving_write(lt_ctx *c, lt_saving *s, const void *data, size_t n);
bool lt_saving_commit(lt_ctx *c, lt_saving *s);

/* A folder that is being saved: begin makes one with a temporary name beside `path`, of at most
   `size` bytes with its end, into which files are saved; commit gives it, or a file in it, its name
   in place of a file or a folder of files there: at each moment the path holds the former one or
   the new one. A folder whose process has died is removed as temporaries are. */
bool lt_folder_begin(lt_ctx *c, const char *op, const char *path, char *temporary, size_t size);
bool lt_folder_commit(lt_ctx *c, const char *op, const char *temporary, const char *path);

/* Remove a folder of files; it is a temporary one before the first is gone. True when it is not
   there. */
bool lt_folder_discard(lt_ctx *c, const char *op, const char *path);

/* Whether the state may write files; fails with the permission that it lacks. */
bool lt_file_may_write(lt_ctx *c, const char *op, const char *path);

/* The four steps at once. */
bool lt_file_save(lt_ctx *c, const char *op, const char *path, const void *data, size_t n);

/* Make a file that did not exist: *made is false, and nothing written, when it did. Of several
   processes on several hosts that do so at once one makes it, over network file systems too; its
   text is whole when it is there. It is not synced. */
bool lt_file_create(lt_ctx *c, const char *op, const char *path, const void *data, size_t n,
                    bool *made);

/* Add to the end of a file, which is made if absent: one write, so that lines stay whole. What a
   full disk cuts short is taken back. */
bool lt_file_append(lt_ctx *c, const char *op, const char *path, const void *data, size_t n);

/* Remove a file or an empty folder; true when it is not there. */
bool lt_file_remove(lt_ctx *c, const char *op, const char *path);

/* Make `path` a symbolic link to `target` (relative to the link's folder), over what is there: at
   each moment it leads to the former file or to the new one. */
bool lt_file_link(lt_ctx *c, const char *op, const char *target, const char *path);

/* The path of the file that a symbolic link leads to, of at most `size` bytes with its end; false
   where `path` is not a link, or leads to nothing. */
bool lt_file_follow(lt_ctx *c, const char *path, char *out, size_t size);

/* Make a folder and those above it; true when it is there already. */
bool lt_folder_make(lt_ctx *c, const char *op, const char *path);

/* Make a folder that is not there: `made` says whether it was this call that did. Of several that
   ask at once one gets it. */
bool lt_folder_claim(lt_ctx *c, const char *op, const char *path, bool *made);

/* Whether entries can be made in a folder, or, where it is not there yet, in the nearest one above
   it: a run finds out at its start, not when there is something to lose. */
bool lt_folder_writable(lt_ctx *c, const char *op, const char *path);

/* Call each(ud, name) for the entries of a folder, in no order. */
bool lt_folder_list(lt_ctx *c, const char *op, const char *path,
                    bool (*each)(void *ud, const char *name), void *ud);

/* What is at a path; LT_NO_FILE also when the policy forbids to look (no failure). */
typedef enum lt_file_kind { LT_NO_FILE, LT_PLAIN_FILE, LT_FOLDER, LT_OTHER_FILE } lt_file_kind;
lt_file_kind lt_file_kind_of(lt_ctx *c, const char *path);

/* When a file was written last, in seconds since 1970; false when nothing is there. */
bool lt_file_modified(lt_ctx *c, const char *path, double *out);

/* Whether two paths lead to one file that is there. */
bool lt_file_same(lt_ctx *c, const char *a, const char *b);

#endif
