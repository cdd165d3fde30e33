# spec/bench/torch_steps.py: PyTorch's side of ./dev bench torch.
#
#   python torch_steps.py MODEL STEPS FOLDER
#
# Writes FOLDER/<model>.safetensors: the first weights (w.<name>), a batch a step (x.<i>, y.<i>), the
# losses, and the seconds of the fastest step.
import json, os, struct, sys, time
import torch
import torch.nn.functional as F
from torch_models import batch, make_net, make_optimizer


def save(path, tensors, losses, seconds):
    header, at, parts = {}, 0, []
    for name, t in tensors.items():
        raw = t.detach().contiguous().numpy().tobytes()
        kind = {torch.float32: "F32", torch.int64: "I64"}[t.dtype]
        header[name] = {"dtype": kind, "shape": list(t.shape), "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        parts.append(raw)
    header["__metadata__"] = {"losses": " ".join(repr(x) for x in losses), "seconds": repr(seconds)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for raw in parts:
            f.write(raw)


def main():
    model, steps, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    torch.manual_seed(1)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    net = make_net(model)
    tensors = {"w." + k: v.clone() for k, v in net.state_dict().items()}
    optimizer = make_optimizer(model, net)
    losses, best = [], 1e9
    for i in range(steps):
        x, y = batch(model)
        tensors["x.%d" % i], tensors["y.%d" % i] = x, y
        start = time.perf_counter()
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        best = min(best, time.perf_counter() - start)
        losses.append(loss.item())
    save(os.path.join(folder, model + ".safetensors"), tensors, losses, best)


main()
