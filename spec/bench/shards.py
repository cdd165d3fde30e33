# spec/bench/shards.py: PyTorch's side of ./dev bench shards and parallel: DistributedDataParallel,
# fully_shard and parallelize_module over gloo.
#
#   python shards.py ddp|fsdp|tensor MODEL RANKS WINDOWS STEPS
#
# One thread a rank. Prints `window SECONDS` of a step of rank 0, a line for each window of STEPS
# whole steps.
import os, socket, sys, time
import torch
import torch.nn.functional as F
from torch_models import batch, make_net, make_optimizer

kind, model = sys.argv[1], sys.argv[2]
ranks, windows, steps = (int(n) for n in sys.argv[3:6])
WARM_UP = 3


# As lt.parallelize does it in shards_fit.lua; which rows of `qkv` a rank has makes no difference here.
def parallelize(net, mesh):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    plan = {"qkv": ColwiseParallel(), "out": RowwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel()}
    for block in net.blocks:
        block.heads //= ranks
        parallelize_module(block, mesh, plan)
    return net


def shard(net):
    if kind == "ddp":
        return torch.nn.parallel.DistributedDataParallel(net)
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (ranks,))
    if kind == "tensor":
        return parallelize(net, mesh)
    from torch.distributed.fsdp import fully_shard

    for block in net.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(net, mesh=mesh)


def one_rank(rank, port):
    torch.set_num_threads(1)
    torch.manual_seed(1 + rank)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=ranks)
    net = shard(make_net(model))
    optimizer, (x, y), began = make_optimizer(model, net), batch(model), None
    for index in range(WARM_UP + windows * steps):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done = index + 1 - WARM_UP
        if done >= 0 and done % steps == 0:
            now = time.perf_counter()
            if began is not None and rank == 0:
                print("window %.6g" % ((now - began) / steps), flush=True)
            began = now
    torch.distributed.destroy_process_group()


with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
torch.multiprocessing.start_processes(one_rank, (port,), nprocs=ranks, start_method="fork")
