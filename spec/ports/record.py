# spec/ports/record.py: the losses of recorded.jsonl, from PyTorch.
#
#   OMP_NUM_THREADS=1 python spec/ports/record.py
#
# Each function of the torch_*.py beside it is a tutorial's model, trained for 20 steps; its name
# is that of the port to ltrain, spec/ports/<name>.lua.
import importlib
import math
import pathlib
import sys
import types

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import recorded  # noqa: E402


def ports():
    found = {}
    for path in sorted(HERE.glob("torch_*.py")):
        module = importlib.import_module(path.stem)
        for name, value in vars(module).items():
            own = isinstance(value, types.FunctionType) and value.__module__ == path.stem
            if own and not name.startswith("_"):
                found[name] = value
    return found


def row(name, losses):
    assert len(losses) == 20 and all(map(math.isfinite, losses)), (name, losses)
    assert abs(losses[0] - losses[-1]) > 1e-2, f"{name} learns nothing: {losses}"
    return {"name": name, "losses": recorded.rounded(losses, 9)}


torch.set_num_threads(1)
chosen = sys.argv[1:]
rows = []
for name, run in sorted(ports().items()):
    if not chosen or name in chosen:
        torch.manual_seed(0)
        rows.append(row(name, run()))
if chosen:
    print("\n".join(map(recorded.line, rows)))
else:
    with open(HERE / "recorded.jsonl", "w") as out:
        recorded.write("spec/ports/record.py", torch, rows, out)
