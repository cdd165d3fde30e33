/* runtime/cuda/open.cu: lt_backend_open of the CUDA backend.

   The backend is a shared library that ltrain opens where it finds a GPU: the program itself links
   no library of NVIDIA's. Versions and the hash of all ops are compared, as the tables of kernels
   are indexed by op number. */
#include <stdio.h>

#include "cuda/device.h"

const lt_host *lt_cuda_host;
extern "C" uint64_t lt_op_hash(void); /* ops/abi_hash.c, of what this was built with */

/* Assigned by name, since C++17 has no designated initializers. */
static lt_device_ops make_table(void) {
  lt_device_ops o = {};
  o.size = sizeof o;
  o.version = LT_BACKEND_VERSION;
  o.name = "cuda";
  o.alias = "gpu";
  o.link = "nccl";
  o.op_hash = lt_op_hash();
  o.kernels = lt_cuda_kernels();
  o.count = lt_cuda_count;
  o.available = lt_cuda_available;
  o.open = lt_cuda_open;
  o.alloc = lt_cuda_alloc;
  o.free = lt_cuda_free;
  o.memory_info = lt_cuda_memory_info;
  o.describe = lt_cuda_describe;
  o.bus_address = lt_cuda_bus_address;
  o.host_alloc = lt_cuda_host_alloc;
  o.host_free = lt_cuda_host_free;
  o.stream_new = lt_cuda_stream_new;
  o.stream_native = lt_cuda_stream_export;
  o.event_record = lt_cuda_event_record;
  o.event_done = lt_cuda_event_done;
  o.event_wait = lt_cuda_event_wait;
  o.stream_wait = lt_cuda_stream_wait;
  o.synchronize = lt_cuda_synchronize;
  o.copy = lt_cuda_copy;
  o.launch = lt_cuda_launch;
  o.take_error = lt_cuda_take_error;
  o.combine = lt_cuda_combine;
  o.divide = lt_cuda_divide;
  o.scale = lt_cuda_scale;
  o.timer_record = lt_cuda_timer_record;
  o.timer_elapsed = lt_cuda_timer_elapsed;
  o.timer_free = lt_cuda_timer_free;
  o.range_push = lt_cuda_range_push;
  o.range_pop = lt_cuda_range_pop;
  o.mark = lt_cuda_mark;
  o.capture_begin = lt_cuda_capture_begin;
  o.capture_end = lt_cuda_capture_end;
  o.graph_launch = lt_cuda_graph_launch;
  o.graph_update = lt_cuda_graph_update;
  o.graph_free = lt_cuda_graph_free;
  return o;
}

/* Called once, under ltrain's lock. Tables are static: ltrain keeps pointers to them, and never
   closes the library. */
extern "C" LT_API bool lt_backend_open(const lt_host *host, lt_backend *out) {
  static lt_device_ops table;
  static char about[64];
  out->version = LT_BACKEND_VERSION;
  if (host->version != LT_BACKEND_VERSION) return true; /* ltrain says what differs */
  lt_cuda_host = host;
  table = make_table();
  snprintf(about, sizeof about, "CUDA runtime %d.%d", CUDART_VERSION / 1000,
           CUDART_VERSION % 1000 / 10);
  out->op_hash = lt_op_hash();
  out->device = &table;
  out->about = about;
  return true;
}
