# spec/bench/elastic_fit.py: PyTorch's side of ./dev bench elastic: the same model over
# DistributedDataParallel with gloo, which rank 0 saves every 10 seconds, and which resumes from
# that file.
#
#   MARKS=PREFIX LAYERS=N WIDTH=N SECONDS=N torchrun --nproc_per_node 2 elastic_fit.py
import os, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
torch.manual_seed(1)
layers, width = int(os.environ["LAYERS"]), int(os.environ["WIDTH"])
every, path = 10, os.environ["MARKS"] + ".ckpt"
ranks = int(os.environ.get("WORLD_SIZE", 1))
rank = int(os.environ.get("RANK", 0))
if ranks > 1:
    dist.init_process_group("gloo")
net = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(layers)])
optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
step = 0
if os.path.exists(path):
    saved = torch.load(path)
    net.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    step = saved["step"]
model = DistributedDataParallel(net) if ranks > 1 else net
data = torch.randn(4096, width)
marks = open("%s.%d" % (os.environ["MARKS"], rank), "a")
began = saved_at = time.time()
while time.time() - began < int(os.environ["SECONDS"]):
    marks.write("%d %d %.6f\n" % (os.getpid(), step, time.time()))
    marks.flush()
    batch = data[torch.randint(0, 4096, (8,))]
    loss = torch.nn.functional.mse_loss(model(batch), batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    if rank == 0 and time.time() - saved_at > every:
        torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step},
                   path + ".tmp")
        os.replace(path + ".tmp", path)
        saved_at = time.time()
