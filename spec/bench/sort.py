# spec/bench/sort.py: the times of sort.sh in PyTorch, one `name ms` a line.
import sys
import time

import torch

n, rounds = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(1)


def least(name, call):
    times = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    print(name, min(times) * 1e3, flush=True)


x = torch.randn(n)
least("sort_f32", x.sort)
least("sort_f64", x.double().sort)
least("sort_i64", torch.randint(-(2**62), 2**62, (n,)).sort)
least("sort_rows", x[: n // 1000 * 1000].view(-1, 1000).sort)
least("randperm", lambda: torch.randperm(n))
