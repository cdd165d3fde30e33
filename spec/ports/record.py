# spec/ports/record.py: the losses of spec/ports/recorded.lua, from PyTorch.
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

HERE = pathlib.Path(__file__).parent
HEAD = """\
-- spec/ports/recorded.lua: the losses of 20 steps of each model, by PyTorch {version}. Made by
-- record.py: change that, then run it.
return {{
"""


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
    text = f"  {name} = {{"
    lines = [text]
    for loss in losses:
        word = f"{loss:.9g}, "
        if len(lines[-1] + word) > 99:
            lines.append("    ")
        lines[-1] += word
    lines[-1] = lines[-1].rstrip(", ") + "},"
    return "\n".join(line.rstrip() for line in lines) + "\n"


sys.path.insert(0, str(HERE))
torch.set_num_threads(1)
chosen = sys.argv[1:]
rows = []
for name, run in sorted(ports().items()):
    if not chosen or name in chosen:
        torch.manual_seed(0)
        rows.append(row(name, run()))
text = HEAD.format(version=torch.__version__.split("+")[0]) + "".join(rows) + "}\n"
if chosen:
    print(text)
else:
    (HERE / "recorded.lua").write_text(text)
