/* runtime/comm/mpi/open.c: joining and leaving MPI's world; links of fewer ranks.

   MPI_Init and making communicators are the only calls that block. The launcher's watchdog looks on
   at the first; the others run when all members have said that they are there. */
#include "comm/mpi/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const lt_comm_host *host;

/* The link over a communicator, which stays the caller's; collective over its ranks. */
static lt_comm_link *link_over(MPI_Comm comm, char *text) {
  lt_comm_link *l = calloc(1, sizeof *l);
  if (l == NULL) {
    snprintf(text, LT_COMM_TEXT, "out of memory for a link");
    return NULL;
  }
  l->p2p = (lt_p2p){.ops = &lt_mpi_messages, .host = host};
  MPI_Comm near = MPI_COMM_NULL;
  bool ok = lt_mpi_ok(MPI_Comm_dup(comm, &l->comm), "MPI_Comm_dup", text) &&
            lt_mpi_ok(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near),
                      "MPI_Comm_split_type", text);
  if (!ok) {
    free(l);
    return NULL;
  }
  MPI_Comm_set_errhandler(l->comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(l->comm, &l->p2p.rank);
  MPI_Comm_size(l->comm, &l->p2p.size);
  MPI_Comm_rank(near, &l->local_rank);
  MPI_Comm_size(near, &l->local_size);
  MPI_Comm_free(&near);
  l->p2p.near = l->local_size == l->p2p.size;
  if (lt_mpi_ok(MPI_Allreduce(&l->local_size, &l->most_local, 1, MPI_INT, MPI_MAX, l->comm),
                "MPI_Allreduce", text))
    return l;
  MPI_Comm_free(&l->comm);
  free(l);
  return NULL;
}

static lt_comm_link *open_world(const lt_comm_host *h, const lt_comm_place *place, char *text,
                                size_t text_size) {
  char why[LT_COMM_TEXT] = "";
  int initialised = 0, provided = MPI_THREAD_FUNNELED;
  (void)place; /* MPI knows */
  host = h;
  MPI_Initialized(&initialised);
  bool ok = initialised || lt_mpi_ok(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided),
                                     "MPI_Init_thread", why);
  if (ok && provided < MPI_THREAD_FUNNELED) {
    ok = false;
    snprintf(why, sizeof why, "this MPI does not support threads");
  }
  lt_comm_link *l = NULL;
  if (ok) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    l = link_over(MPI_COMM_WORLD, why);
  }
  if (l == NULL) {
    snprintf(text, text_size, "%s", why);
    return NULL;
  }
  l->world = !initialised;
  return l;
}

/* MPI_Comm_free is collective by its letter; MPI's libraries do it without a word to others. */
static void leave_link(lt_comm_link *l) {
  MPI_Comm_free(&l->comm);
  lt_p2p_end(l);
  free(l);
}

static void close_link(lt_comm_link *l) {
  bool world = l->world;
  leave_link(l);
  if (world) MPI_Finalize();
}

/* Something is under way that never ends: MPI is not called any more. */
static void abandon_link(lt_comm_link *l) {
  lt_p2p_end(l);
  free(l);
}

static void link_local(const lt_comm_link *l, int *local_rank, int *local_size) {
  *local_rank = l->local_rank;
  *local_size = l->local_size;
}

/* MPI_Comm_create_group is collective over the members only (MPI 3.0), unlike MPI_Comm_split: ranks
   outside of the group need not be there. Its tag keeps groups apart that are made at the same time
   by overlapping members. */
static lt_comm_link *split(lt_comm_link *parent, uint32_t group, int n, const int *members,
                           char *text, size_t text_size) {
  enum { LEAST_TAG_UB = 32767 }; /* what the standard promises */
  char why[LT_COMM_TEXT] = "";
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  bool ok = lt_mpi_ok(MPI_Comm_group(parent->comm, &all), "MPI_Comm_group", why) &&
            lt_mpi_ok(MPI_Group_incl(all, n, members, &some), "MPI_Group_incl", why) &&
            lt_mpi_ok(MPI_Comm_create_group(parent->comm, some, (int)(group & LEAST_TAG_UB), &comm),
                      "MPI_Comm_create_group", why);
  lt_comm_link *l = ok ? link_over(comm, why) : NULL;
  if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
  if (some != MPI_GROUP_NULL) MPI_Group_free(&some);
  if (all != MPI_GROUP_NULL) MPI_Group_free(&all);
  if (l == NULL) snprintf(text, text_size, "%s", why);
  return l;
}

static const lt_comm_ops ops = {
    .size = sizeof(lt_comm_ops),
    .version = LT_COMM_VERSION,
    .name = "mpi",
    .open = open_world,
    .close = close_link,
    .abandon = abandon_link,
    .rank = lt_p2p_rank,
    .ranks = lt_p2p_ranks,
    .local = link_local,
    .compare = lt_p2p_compare,
    .move = lt_p2p_move,
    .split = split,
    .leave = leave_link,
    .compare_pair = lt_p2p_compare_pair,
};

/* "Open MPI v4.1.4" of "Open MPI v4.1.4, package: ...". */
static const char *library(void) {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int n = 0;
  MPI_Get_library_version(text, &n);
  text[strcspn(text, ",\n")] = '\0';
  return text;
}

LT_API bool lt_backend_open(const lt_host *h, lt_backend *out) {
  out->version = LT_BACKEND_VERSION;
  if (h->version != LT_BACKEND_VERSION) return true; /* ltrain reports it, with both numbers */
  out->about = library();
  out->comm = &ops;
  return true;
}
