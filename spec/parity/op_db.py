"""spec/parity/op_db.py: the samples of PyTorch's own operator database, in ltrain.

  python op_db.py LTRAIN answer.lua FOLDER [samples.jsonl]

An operation of ltrain that has the name of one in op_db gets its samples (f64, with gradients, and
i64), and must refuse its error_inputs; arguments go by place and name as lt.ops() has them, RENAMED
where the names differ. Complex tensors are pairs of real ones where the row says so. Small samples
of written.lua's operations go to samples.jsonl, which the suite repeats. What cannot be said in
ltrain is counted, not compared. DIFFERS has the samples that differ on purpose; LACKING in op_db_names.py says why an operation is not there."""
import json
import os
import subprocess
import sys
import types
import unittest
import warnings

import torch

from compare import TOLERANCE, described, difference, NAMES, recorded
from op_db_names import LACKING

if "expecttest" not in sys.modules:  # wanted by PyTorch's testing package, not by op_db
    stub = types.ModuleType("expecttest")
    stub.TestCase = unittest.TestCase
    sys.modules["expecttest"] = stub
warnings.filterwarnings("ignore")

NUMBERS = {"quantile", "scatter", "searchsorted"}  # kinds whose last tensor may be a number
MOST = 512  # elements of a sample that is run
ZERO_BASED = {"dim": 1, "dims": 1, "pos": 1, "position": 1}

# op_db's name -> ltrain's, where it is not the last word of it.
RENAMED = {"nn.functional.one_hot": "one_hot", "linalg.vector_norm": "norm",
           "matrix_exp": "linalg.matrix_exp", "true_divide": "div",
           "bmm": "matmul", "norm": None,
           "linalg.norm": None, "sum_to_size": None, "linspace": None,
           "nn.functional.unfold": None, "special.modified_bessel_i0": "i0",
           "special.modified_bessel_i1": "i1"}
# PyTorch's word for an argument -> ltrain's.
ARGUMENTS = {"axis": "dim", "ord": "p", "is_causal": "causal", "diagonal": "diagonal",
             "dim0": "dim0", "attn_mask": "mask"}
# Draws: no two libraries give the same numbers.
DRAWS = {"bernoulli", "dropout", "multinomial", "randint", "rand", "randn", "randperm"}
# Samples that give something else, or are refused, on purpose: by the operation, a part of what is
# reported (or of the line of the sample), and the reason.
SCALARS = {"is not refused": "a number beside a tensor is taken by every binary operation"}
COMMON = {"needs a floating tensor": "losses are of floats",
          "shapes differ": "losses take tensors of one shape: nothing is broadcast by mistake",
          "needs [C] or [N, C]": "classes have a dim", "needs targets of": "a target for each row"}
PRECISION = {"differs by": "PyTorch's is good to 1e-6 (airy_ai and bessel_*), 1e-9 (polygamma)"}
UNREAD = {"differs by": "the half of L that is not read has a derivative of 0"}
NOTHING = {"is not refused": "nothing in, nothing out"}
DIFFERS = {
    "abs": {"differs by 2": "the smallest i64, which JSON does not hold"},
    "atan2": SCALARS, "gcd": SCALARS, "logaddexp": SCALARS,
    "baddbmm": {"does not fit into a tensor of i64": "fractions of integers are refused"},
    "addmv": {"does not fit into a tensor of i64": "fractions of integers are refused"},
    "addbmm": {"does not fit into a tensor of i64": "fractions of integers are refused"},
    "addr": {"does not fit into a tensor of i64": "fractions of integers are refused"},
    "cat": {"is not refused": "one tensor is a list of one"},
    "cholesky_inverse": UNREAD, "cholesky_solve": UNREAD,
    "clamp": {"needs a tensor of one element": "bounds are numbers"},
    "digamma": {"differs by": "PyTorch's derivative is good to 1e-9"},
    "gather": {"does not fit": "an index without elements must fit along the other dims"},
    "kthvalue": {"differs by": "among equals the first comes first; PyTorch gives any"},
    "logical_and": SCALARS, "logical_or": SCALARS, "logical_xor": SCALARS, "maximum": SCALARS,
    "minimum": SCALARS,
    "masked_fill": {"no gradient": "the value is a number: it has no gradient",
                    "is not refused": "a tensor of one element is a number"},
    "mean": {"is not refused": "the mean of integers is f32"},
    "narrow": {"must be a number, got a tensor": "a start is a number"},
    "cov": {"'f32', [": "weights are taken in the dtype of x", "is not refused": "or negative"},
    "igamma": SCALARS, "igammac": SCALARS, "polygamma": PRECISION, "special.polygamma": PRECISION,
    "special.airy_ai": PRECISION, "special.bessel_j0": PRECISION, "special.bessel_j1": PRECISION,
    "special.bessel_y0": PRECISION, "special.bessel_y1": PRECISION,
    "fmax": SCALARS, "fmin": SCALARS, "copysign": SCALARS, "hypot": SCALARS,
    "unravel_index": {"9223372036854775807": "JSON does not hold it"},
    "nn.functional.embedding_bag": {"padding_idx must be": "ids count from 0, none is negative"},
    "nn.functional.batch_norm": {
        "no derivative by running": "statistics are detached",
        "updates no running means": "those of a module are", "needs x [N, C": "[N] has no channels"},
    "nn.functional.hardsigmoid": {"differs by": "PyTorch's sixth in the derivative is one of f32"},
    "nn.functional.scaled_dot_product_attention": {
        "'dropout_p': 0.5": "draws", "'dropout_p': 0.1": "draws"},
    "roll": {"is not refused": "a tensor without dims has one position"},
    "scatter": {"is not refused": "the source is cast to the dtype of x"},
    "take_along_dim": {"is out of 0": "indices count from 0, none is negative"},
    "scatter_add": {"is not refused": "the source is cast to the dtype of x"},
    "nn.functional.avg_pool2d": {"got {}": "an option is left out, not an empty list"},
    "nn.functional.local_response_norm": {"not defined for i64": "means are of floats"},
    "nn.functional.max_pool1d": NOTHING, "nn.functional.max_pool3d": NOTHING,
    "topk": {"differs by": "among equals the first comes first; PyTorch gives any"},
}


for windows in range(1, 4):
    for kind in ("conv%dd", "conv_transpose%dd"):
        DIFFERS["nn.functional." + kind % windows] = {
            "not defined for i64": "products of integers are for matmul",
            "is not refused": "dtypes are promoted"}
    DIFFERS.setdefault("nn.functional.avg_pool%dd" % windows, {})[
        "not defined for i64"] = "means are of floats"


class Untold(Exception):
    """What a sample asks for cannot be said in ltrain."""


def name_in(ops, name):
    """What ltrain calls an operation of op_db."""
    short = name.removeprefix("nn.functional.")
    if short not in ops:
        short = short.removeprefix("special.")
    return RENAMED.get(name, short)


def from_zero(kind, value):
    if kind == "dims":
        many = value if isinstance(value, (tuple, list)) else [value]
        if any(isinstance(v, bool) for v in many):
            raise Untold("an older order of arguments")
        return [from_zero("dim", v) for v in many]
    if kind in ZERO_BASED and isinstance(value, int) and not isinstance(value, bool):
        return value + 1 if value >= 0 else value
    if isinstance(value, torch.Size):
        return [int(v) for v in value]
    if isinstance(value, tuple):
        return [from_zero(kind, v) for v in value]
    return value


def real(t):
    """Complex numbers as pairs."""
    return torch.view_as_real(t.resolve_conj()) if torch.is_tensor(t) and t.is_complex() else t


def description(t):
    if t.is_complex():
        t = real(t).detach().requires_grad_(t.requires_grad)
    if t.dtype not in NAMES or t.is_sparse or t.numel() > MOST:
        raise Untold("a tensor of %s" % t.dtype)
    d = described(t.detach())
    return {"dtype": d["dtype"], "shape": d["shape"], "values": d["values"], "layout": 1,
            "fixed": not t.requires_grad or None}


def put(options, args, name, value):
    name = ARGUMENTS.get(name, name)
    known = {a["name"]: a["type"] for a in args}
    if name == "dim" and name not in known and "dims" in known:
        name = "dims"
    if name not in known:
        if value is None or value == "cpu" or (value is False and name != "unbiased"):
            return
        raise Untold("option %s" % name)
    if value is None:
        return
    if known[name] == "name" and value in NAMES:
        value = NAMES[value]
    parts = value if isinstance(value, (list, tuple)) else [value]
    if any(torch.is_tensor(v) or isinstance(v, (torch.dtype, complex)) for v in parts):
        raise Untold("option %s" % name)
    options[name] = from_zero(known[name], value)


def in_order(name, values):
    """The arguments as ltrain takes them."""
    return [values[1], values[0]] + values[2:] if name == "where" else values


def case_of(name, row, sample):
    """The call in ltrain of a sample."""
    first = sample.input
    given = list(first) if isinstance(first, (list, tuple)) else [first]
    listed = isinstance(first, (list, tuple)) or all(map(torch.is_tensor, [first, *sample.args]))
    if row["list"] and not listed or isinstance(first, (list, tuple)) and not row["list"]:
        raise Untold("a list")
    args, inputs, options, places = row["args"] or [], [], {}, iter(row["args"] or [])
    named = []
    for value in in_order(name, given + list(sample.args)):
        if torch.is_tensor(value) and len(inputs) >= len(row["inputs"]) and row.get("named"):
            name_of = [n for n in row["named"] if n not in named]
            named.append(name_of[0])
            inputs.append(description(value))
            if name_of[0] in row.get("places", []):
                next(places, None)
        elif torch.is_tensor(value):
            inputs.append(description(value))
        elif isinstance(value, (int, float)) and (
                row["kind"] in ("binary", "compare") or
                ((row["kind"] in NUMBERS or row.get("number")) and len(inputs) == len(row["inputs"]) - 1)):
            inputs.append(value)
        elif value is None and name == "clamp":
            raise Untold("a bound left out")
        else:
            place = next(places, None)
            if place is None:
                raise Untold("an argument too many")
            put(options, args, place["name"], value)
    for key, value in sample.kwargs.items():
        if torch.is_tensor(value):
            names = row["inputs"] or []
            if key in (row.get("named") or []):
                named.append(key)
                inputs.append(description(value))
                continue
            if key not in names or names.index(key) != len(inputs):
                raise Untold("tensor %s" % key)
            inputs.append(description(value))
        else:
            put(options, args, key, value)
    return {"op": name, "inputs": inputs, "options": options, "list": bool(row["list"]),
            **({"named": named} if named else {})}


def expected(op, sample):
    """Results, and gradients by the tensors of the call in their order."""
    y = op.op(sample.input, *sample.args, **sample.kwargs)
    lists = [[y]] if torch.is_tensor(y) else [[t] if torch.is_tensor(t) else t for t in y]
    results = [real(t) for one in lists for t in one]
    if not all(torch.is_tensor(t) and t.dtype in NAMES for t in results):
        raise Untold("a result of another kind")
    if not results:
        raise Untold("no result")
    first = results[0]
    given = list(sample.input) if isinstance(sample.input, (list, tuple)) else [sample.input]
    given = in_order(op.name, given + list(sample.args)) + list(sample.kwargs.values())
    leaves = [t for t in given if torch.is_tensor(t)]
    grads = [None] * len(leaves)
    if first.requires_grad and first.numel() > 0:
        w = torch.sin(torch.arange(1, first.numel() + 1, dtype=torch.float64) * 0.37)
        wanted = [t for t in leaves if t.requires_grad]
        got = iter(torch.autograd.grad((first * w.reshape(first.shape)).sum(), wanted,
                                       allow_unused=True))
        grads = [real(next(got)) if t.requires_grad else None for t in leaves]
    return results, grads


def samples_of(op, row):
    for dtype, grad in ((torch.float64, True), (torch.int64, False)):
        if dtype not in op.supported_dtypes("cpu"):
            continue
        grad = grad and op.supports_autograd
        if row.get("pairs"):
            dtype = torch.complex128
        for sample in op.sample_inputs("cpu", dtype, requires_grad=grad):
            yield sample


def collect(ops, op_db):
    """Cases with what is expected of them, counts of what cannot be said."""
    cases, untold = [], {}
    for op in op_db:
        name = name_in(ops, op.name)
        if name not in ops or name in DRAWS:
            continue
        for sample in samples_of(op, ops[name]):
            try:
                case = case_of(name, ops[name], sample)
                cases.append((op.name, case, expected(op, sample)))
            except Untold as e:
                key = (op.name, str(e))
                untold[key] = untold.get(key, 0) + 1
        if op.error_inputs_func is None:
            continue
        for error in op.error_inputs("cpu"):
            try:
                cases.append((op.name, case_of(name, ops[name], error.sample_input), None))
            except (Untold, AttributeError, TypeError) as e:
                key = (op.name, "error: " + str(e)[:40])
                untold[key] = untold.get(key, 0) + 1
    return cases, untold


def fault(answer, want):
    """What is wrong, or None; and the largest difference."""
    if want is None:
        return (None if "error" in answer else "is not refused"), 0.0
    if "error" in answer:
        return "refused: " + answer["error"][-150:], 0.0
    results, grads = want
    worst = 0.0
    got = answer["results"][:len(results)] + (answer["grads"] or [])
    for g, w in zip(got, results + grads):
        if w is None:
            continue
        if not g:
            if w.abs().sum() != 0:
                return "no gradient", worst
            continue
        if g["shape"] != list(w.shape):
            return "shape %s, PyTorch %s" % (g["shape"], list(w.shape)), worst
        d = difference(g, w)
        worst = max(worst, d)
        if d > TOLERANCE.get(g["dtype"], 0):
            return "differs by %.3g" % d, worst
    return None, worst


def worth_recording(case, want, already):
    """Two small samples of each, one of them with gradients."""
    results, grads = want
    inputs = [x for x in case["inputs"] if isinstance(x, dict)]
    size = sum(len(x["values"]) for x in inputs) + sum(t.numel() for t in results)
    same = [w for c, w in already if c["op"] == case["op"]]
    if size == 0 or size > (40 if same else 120):
        return False
    return len(same) < 2 and not any(len(w[0]) == len(results) and [
        g is None for g in w[1]] == [g is None for g in grads] for w in same)


def rows(cases):
    """PyTorch's answers, for spec/parity/recorded_spec.lua."""
    for case, (results, grads) in cases:
        yield {**case, "answer": {"results": [described(t) for t in results],
                                  "grads": [described(t) for t in grads]}}


def main():
    ltrain, script, folder = sys.argv[1:4]
    samples = sys.argv[4] if len(sys.argv) > 4 else None
    torch.manual_seed(0)
    from torch.testing._internal.common_methods_invocations import op_db
    ops = json.loads(subprocess.check_output([ltrain, script]))
    cases, untold = collect(ops, op_db)
    path = os.path.join(folder, "op_db.jsonl")
    with open(path, "w") as out:
        out.writelines(recorded.line(case) + "\n" for _, case, _ in cases)
    answers = subprocess.run([ltrain, script, path], stdout=subprocess.PIPE, check=True).stdout
    wrong, worst, on_purpose, agreed = [], {}, 0, []
    for (name, case, want), line in zip(cases, answers.splitlines()):
        text, d = fault(json.loads(line), want)
        worst[name] = max(worst.get(name, 0.0), d)
        if samples and want and not text and ops[case["op"]]["kind"] == "written" and (
                worth_recording(case, want, agreed)):
            agreed.append((case, want))
        shown = "%s %s %s: %s" % (name, [x if isinstance(x, (int, float)) else (
            x["dtype"], x["shape"]) for x in case["inputs"]], case["options"] or "", text)
        if text and any(
                part in shown for part in {**COMMON, **DIFFERS.get(name, {})}):
            on_purpose += 1
        elif text:
            wrong.append(shown)
    for name in sorted(worst):
        print("op_db %-36s %.3g" % (name, worst[name]))
    names = {op.name for op in op_db}
    reasons = {n: why for why, text in LACKING.items() for n in text.split()}
    unknown = sorted(n for n in names if n not in worst and n not in reasons)
    for why, text in LACKING.items():
        print("op_db, not in ltrain, %s: %s" % (why, " ".join(
            n for n in text.split() if n in names and n not in worst)))
    print("op_db, neither there nor with a reason: " + (" ".join(unknown) or "none"))
    for text in wrong:
        print("op_db differs: " + text)
    print("%d samples of op_db of %d operations, %d differ (%d on purpose), %d cannot be said" % (
        len(cases), len(worst), len(wrong), on_purpose, sum(untold.values())))
    if os.environ.get("LT_PARITY_UNTOLD"):
        for (name, why), n in sorted(untold.items()):
            print("cannot be said: %s: %s (%d)" % (name, why, n))
    if samples:
        with open(samples, "w") as out:
            recorded.write("spec/parity/op_db.py", torch, rows(agreed), out)
    return 1 if wrong or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
