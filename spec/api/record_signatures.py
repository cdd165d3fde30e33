"""spec/api/record_signatures.py: writes the public names of PyTorch, torchmetrics and Lightning with
their parameters, one a line, for spec/api/signatures_spec.lua.

  python record_signatures.py >spec/api/signatures.txt

  torch.gather(input, dim, index)           parameters by place, `name=` where it has a default,
  torch.sum(input, dim=, keepdim=, *, dtype=)       behind `*` those that go by name alone
  torch.Tensor                              no parameters are known

`out` and what PyTorch no longer documents (size_average, reduce, layout, pin_memory) are left out. Of
overloads the one with the most parameters is written."""
import ast
import importlib
import inspect
import os
import re
import sys
import warnings

import torch

warnings.filterwarnings("ignore")
OLD = {"out", "size_average", "reduce", "layout", "pin_memory", "memory_format", "names"}
ROOMS = ["torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils",
         "torch.optim", "torch.optim.lr_scheduler", "torch.optim.swa_utils", "torch.distributions",
         "torch.linalg", "torch.fft", "torch.special", "torch.autograd", "torch.autograd.functional",
         "torch.func", "torch.utils.data", "torchmetrics", "torchmetrics.classification",
         "torchmetrics.regression", "torchmetrics.text", "torchmetrics.image",
         "torchmetrics.retrieval", "torchmetrics.clustering", "torchmetrics.detection",
         "torchmetrics.aggregation", "torchmetrics.wrappers", "torchmetrics.nominal",
         "torchmetrics.segmentation", "lightning.pytorch", "lightning.pytorch.callbacks",
         "lightning.pytorch.loggers", "lightning.pytorch.profilers", "lightning.pytorch.strategies",
         "lightning.pytorch.plugins", "lightning.pytorch.tuner", "lightning.pytorch.utilities",
         "lightning.pytorch.utilities.combined_loader", "lightning.pytorch.accelerators",
         "lightning.pytorch.plugins.environments", "lightning.pytorch.cli", "lightning.fabric"]
# Classes whose methods and properties users call.
MEMBERS = ["torch.Tensor", "torch.nn.Module", "torch.optim.Optimizer", "torchmetrics.Metric",
           "torch.distributions.Distribution", "lightning.pytorch.Trainer",
           "lightning.pytorch.LightningModule", "lightning.pytorch.LightningDataModule",
           "lightning.pytorch.Callback", "lightning.pytorch.loggers.Logger",
           "lightning.pytorch.tuner.Tuner", "lightning.fabric.Fabric"]


def from_stub(path):
    """{name: list of parameter lists} of a .pyi file's functions."""
    found = {}
    for node in ast.parse(open(path).read()).body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(of_arguments(node.args))
        elif isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef):
                    key = node.name + "." + method.name
                    found.setdefault(key, []).append(of_arguments(method.args)[1:])
    return found


def of_arguments(a):
    places = a.posonlyargs + a.args
    first = len(places) - len(a.defaults)
    rows = [p.arg + ("=" if i >= first else "") for i, p in enumerate(places)]
    if a.vararg:
        rows.append("*" + a.vararg.arg)
    named = [p.arg + ("=" if d is not None else "")
             for p, d in zip(a.kwonlyargs, a.kw_defaults) if p.arg not in OLD]
    if named and not a.vararg:
        rows.append("*")
    rows += named
    if a.kwarg:
        rows.append("**" + a.kwarg.arg)
    return [r for r in rows if r.rstrip("=") not in OLD]


def of_signature(value):
    rows, star = [], False
    for p in inspect.signature(value).parameters.values():
        name = p.name + ("" if p.default is p.empty else "=")
        if p.name in OLD and not (p.name == "pin_memory" and p.kind is p.POSITIONAL_OR_KEYWORD):
            continue
        if p.kind is p.VAR_POSITIONAL:
            name, star = "*" + p.name, True
        elif p.kind is p.VAR_KEYWORD:
            name = "**" + p.name
        elif p.kind is p.KEYWORD_ONLY and not star:
            rows.append("*")
            star = True
        rows.append(name)
    return rows


def of_text(doc, name):
    """From `gather(input, dim, index, *, out=None) -> Tensor` at the head of a doc string."""
    head = re.search(re.escape(name) + r"(\([^\n]*\)) *(->|\n|$)",
                     (doc if isinstance(doc, str) else "").strip()[:300])
    if not head:
        return None
    try:
        return of_arguments(ast.parse("def f" + head.group(1).replace("...", "_") + ": pass")
                            .body[0].args)
    except SyntaxError:
        return None


def parameters(value, name, stub):
    if name in stub:
        return max(stub[name], key=len)
    try:
        rows = of_signature(value)
    except (ValueError, TypeError):
        rows = None
    if isinstance(value, type) and issubclass(value, torch.nn.RNNBase):
        rows = of_signature(torch.nn.RNNBase)[name != "RNNBase":]
    if rows is None or [r.lstrip("*") for r in rows if r != "*"] == ["args", "kwargs"]:
        rows = of_text(getattr(value, "__doc__", None), name.split(".")[-1]) or rows
    return rows


def is_public(name, value):
    if name.startswith("_") or inspect.ismodule(value):
        return False
    if inspect.isbuiltin(value) and not value.__doc__:  # an operation behind a documented one
        return False
    return callable(value) or isinstance(value, property)


def line(room, name, value, stub, key=None):
    rows = parameters(value, key or name, stub)
    if rows and rows[0] == "self":
        rows = rows[1:]
    return room + "." + name + ("" if rows is None else "(" + ", ".join(rows) + ")")


def main():
    folder = os.path.dirname(torch.__file__)
    stubs = {"torch": from_stub(folder + "/_C/_VariableFunctions.pyi")}
    tensor = from_stub(folder + "/_C/__init__.pyi")
    lines = set()
    for room in ROOMS:
        module = importlib.import_module(room)
        names = getattr(module, "__all__", None) or dir(module)
        for name in names:
            value = getattr(module, name, None)
            home = getattr(value, "__module__", None) or ""
            if room == "lightning.pytorch.cli" and home != room:  # it has no list of its own
                continue
            if not is_public(name, value) or home.split(".")[0] not in ("torch", "torchmetrics",
                                                                        "lightning", ""):
                continue
            lines.add(line(room, name, value, stubs.get(room, {})))
    for full in MEMBERS:
        module, name = full.rsplit(".", 1)
        given = getattr(importlib.import_module(module), name)
        for member in dir(given):
            value = inspect.getattr_static(given, member)
            if isinstance(value, (staticmethod, classmethod)):
                value = value.__func__
            if member.startswith("_") or not (callable(value) or isinstance(value, property)
                                              or inspect.isdatadescriptor(value)):
                continue
            if isinstance(value, property) or not callable(value):
                lines.add(full + "." + member)
            else:
                of_tensor = line(full, member, value, tensor, "TensorBase." + member)
                own = line(full, member, value, {}, member)
                known = full != "torch.Tensor" and not own.endswith("(*args, **kwargs)")
                lines.add(own if known else of_tensor)
    print("\n".join(sorted(lines)))


if __name__ == "__main__":
    sys.exit(main())
