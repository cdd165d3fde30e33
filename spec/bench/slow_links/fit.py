# spec/bench/slow_links/fit.py: PyTorch's side of ./dev bench slow_links, as fit.lua.
#
#   RANK= MASTER_ADDR= MASTER_PORT= python fit.py FOLDER SECONDS ddp|powerSGD
import os
import sys
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powerSGD
from torch.nn.parallel import DistributedDataParallel

BATCH, HELD_OUT, WARM_UP = 64, 2000, 3
folder, seconds, name = sys.argv[1], float(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", rank=rank, world_size=2)


def load(file):
    return torch.from_numpy(np.load("%s/%s.npy" % (folder, file)).copy())


net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                    nn.Linear(1024, 10))
with torch.no_grad():
    for i, p in enumerate(net.parameters(), 1):
        p.copy_(load("w%d" % i))
x, y = load("x"), load("y")
count = len(x) - HELD_OUT
ddp = DistributedDataParallel(net)
if name == "powerSGD":
    ddp.register_comm_hook(powerSGD.PowerSGDState(None, 4, start_powerSGD_iter=10),
                           powerSGD.powerSGD_hook)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
torch.manual_seed(1)
steps, began, stop = 0, None, torch.zeros(1)
while stop.item() == 0:
    order = torch.randperm(count)
    for at in range(0, count - 2 * BATCH + 1, 2 * BATCH):
        own = order[at + rank * BATCH:at + (rank + 1) * BATCH]
        optimizer.zero_grad()
        F.cross_entropy(ddp(x[own]), y[own]).backward()
        optimizer.step()
        steps += 1
        if steps == WARM_UP:
            began = time.monotonic()
        stop[0] = began is not None and time.monotonic() - began > seconds
        if steps % 10 == 0:  # rank 0 decides; one message in ten steps
            dist.broadcast(stop, 0)
            if stop.item():
                break
took = time.monotonic() - began
if rank == 0:
    with torch.no_grad():
        loss = F.cross_entropy(net(x[count:]), y[count:]).item()
    print("result %.6g %.6g %d" % (2 * BATCH * (steps - WARM_UP) / took, loss, steps - WARM_UP))
dist.destroy_process_group()
