# spec/bench/reductions.py: the times of reductions.sh in PyTorch, one `name ms` a line.
import sys
import time

import torch
import torch.nn.functional as F

rounds, threads = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(threads)


def least(name, call):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    print(name, min(times) * 1e3, flush=True)


for shape in ([4096, 1024], [1000, 1000], [100000, 16], [32, 128, 256]):
    x = torch.randn(shape)
    for dim in range(len(shape)):
        least("sum_%d_of_%s" % (dim + 1, "x".join(map(str, shape))), lambda: x.sum(dim))
x = torch.randn(1000, 1000)
least("topk_10", lambda: x.topk(10))

weight = torch.randn(100000, 64)
ids, offsets = torch.randint(0, 100000, (512, 32)), torch.arange(0, 512 * 32, 32)
factors, leaf = torch.rand(512, 32), weight.clone().requires_grad_()


def backward():
    leaf.grad = None
    F.embedding_bag(ids, leaf).sum().backward()


least("bag_sum", lambda: F.embedding_bag(ids, weight, mode="sum"))
least("bag_mean", lambda: F.embedding_bag(ids, weight))
least("bag_offsets", lambda: F.embedding_bag(ids.view(-1), weight, offsets))
least("bag_factors",
      lambda: F.embedding_bag(ids, weight, mode="sum", per_sample_weights=factors))
least("bag_backward", backward)
least("fresh_200MB", lambda: torch.ones(50_000_000))
