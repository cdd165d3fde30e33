# spec/dist/torch_hooks.py: the numbers of spec/dist/hooks_spec.lua, from PyTorch's powerSGD_hook on
# two ranks.
#
#   python torch_hooks.py
#
# Gradients, the first Q and weights of the sums are sines, which the spec makes too. For each rank
# of the approximation it prints, as lines of the spec, the weighted sum of each parameter's mean
# gradient after each step.
import math
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powerSGD

SHAPES, STEPS = [(12, 16), (5,), (8, 3, 2, 2), (3, 2)], 4


def sines(shape, factor, offset):
    n = torch.arange(math.prod(shape), dtype=torch.float64)
    return torch.sin(n * factor + n * n * 0.013 + offset).view(shape)


class Bucket:
    def __init__(self, step, rank):
        parts = [sines(s, 0.61 + 0.1 * i, step + 7.3 * rank) for i, s in enumerate(SHAPES)]
        self.flat = torch.cat([p.reshape(-1) for p in parts])
        self.views, at = [], 0
        for s in SHAPES:
            self.views.append(self.flat[at:at + math.prod(s)].view(s))
            at += math.prod(s)

    def buffer(self):
        return self.flat

    def gradients(self):
        return self.views

    def index(self):
        return 0

    def is_last(self):
        return True


def run(rank, of, queue):
    dist.init_process_group("gloo", "tcp://127.0.0.1:29533", rank=rank, world_size=2)
    state = powerSGD.PowerSGDState(None, of, start_powerSGD_iter=2, min_compression_rate=1.3)
    state.iter = 2
    sizes = [(16, 0), (12, 2)]  # columns of what is compressed, and its place
    rows = 12 + 8
    state.p_memory_dict[0] = torch.zeros(rows * of, dtype=torch.float64)
    state.q_memory_dict[0] = torch.cat([sines((n, of), 1.7, i + 1.0).reshape(-1)
                                        for n, i in sizes])
    for step in range(STEPS):
        bucket = Bucket(step, rank)
        powerSGD.powerSGD_hook(state, bucket).wait()
        row = [(view * sines(view.shape, 0.37, 0.2)).sum().item() for view in bucket.views]
        if rank == 0:
            queue.put(row)
    dist.destroy_process_group()


if __name__ == "__main__":
    print("-- PyTorch %s" % torch.__version__)
    for of in (1, 2, 3):
        queue = mp.get_context("spawn").SimpleQueue()
        mp.spawn(run, (of, queue), 2)
        print("  [%d] = {" % of)
        for _ in range(STEPS):
            print("    { " + ", ".join("%.12f" % v for v in queue.get()) + " },")
        print("  },")
