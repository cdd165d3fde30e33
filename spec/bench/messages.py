"""spec/bench/messages.py: one size of message between two ranks of PyTorch over gloo; for messages.lua.

    messages.py BYTES REPETITIONS
"""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank, store, size, repetitions):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    torch.set_num_threads(1)
    x = torch.ones(size // 4)
    for _ in range(5):
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(repetitions):
            dist.send(x, 1) if rank == 0 else dist.recv(x, 0)
        dist.barrier()
        if rank == 0:
            print("seconds", (time.perf_counter() - begin) / repetitions, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    store = "/tmp/ltrain_messages.%d" % os.getpid()
    mp.spawn(run, args=(store, int(sys.argv[1]), int(sys.argv[2])), nprocs=2)
