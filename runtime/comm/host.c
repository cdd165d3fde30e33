/* runtime/comm/host.c: what backends of collectives may ask of ltrain. */
#include "comm/comm.h"

static lt_comm_host host = {
    .size = sizeof(lt_comm_host), .version = LT_COMM_VERSION, .item_size = lt_dtype_size};

void lt_comm_host_use(const lt_device_ops *cpu) {
  host.combine = cpu->combine;
  host.scale = cpu->scale;
}

const lt_comm_host *lt_comm_host_here(void) { return &host; }
