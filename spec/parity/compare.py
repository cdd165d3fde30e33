"""spec/parity/compare.py: the same calls in PyTorch, and how far ltrain's answers are from them.

  python compare.py cases.jsonl [recorded.jsonl]

Prints the largest difference of each op, relative to the value where that is above 1, and ends with
status 1 where one is above the tolerance of its dtype. CALLS says how an op is called in PyTorch;
dims count from 1 in a case."""
import json
import pathlib
import sys
import warnings

import torch
import torch.nn.functional as F

import layers
import rooms

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import recorded  # noqa: E402

warnings.filterwarnings("ignore")

DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16,
          "bf16": torch.bfloat16, "i64": torch.int64, "i32": torch.int32,
          "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
TOLERANCE = {"f64": 1e-10, "f32": 3e-5, "f16": 4e-3, "bf16": 3e-2}


def at(d):
    return d - 1 if d > 0 else d


def dim(o):
    return at(o["dim"])


def dims(o):
    return [at(d) for d in o["dims"]]


def size(o):
    return tuple(o["size"])


def reduce(name):
    f = getattr(torch, name)
    return lambda i, o: f(i[0], dim=dims(o), keepdim=o["keepdim"])


def one_dim(name):
    f = getattr(torch, name)
    return lambda i, o: f(i[0], dims(o)[0], keepdim=o["keepdim"])


def along(name):
    f = getattr(torch, name)
    return lambda i, o: f(i[0], dim=dim(o))


def loss(f):
    return lambda i, o: f(i[0], i[1], reduction=o["reduction"])


def batch_norm(i, o):
    if len(i) > 3:
        return F.batch_norm(i[0], i[3], i[4], i[1], i[2], eps=o["eps"])
    others = [d for d in range(i[0].ndim) if d != 1]
    var, mean = torch.var_mean(i[0], dim=others, correction=0)
    return [F.batch_norm(i[0], None, None, i[1], i[2], training=True, eps=o["eps"]), mean, var]


def instance_norm(i, o):
    var, mean = torch.var_mean(i[0], dim=list(range(2, i[0].ndim)), correction=0)
    return [F.instance_norm(i[0], weight=i[1], bias=i[2], eps=o["eps"]), mean, var]


def slice_of(i, o):
    d, n = at(o["dim"]), i[0].shape[at(o["dim"])]
    first, last = o["from"], o["to"]
    first, last = first + n + 1 if first < 0 else first, last + n + 1 if last < 0 else last
    return i[0].index_select(d, torch.arange(first - 1, last, o["step"]))


def parameters(gradients):
    """Parameters with these gradients."""
    list = []
    for g in gradients:
        list.append(torch.zeros_like(g, requires_grad=True))
        list[-1].grad = g
    return list


def clip_grad_norm(i, o):
    norm = torch.nn.utils.clip_grad_norm_(parameters(i), o["max_norm"], o["norm_type"])
    return [norm] + i


def clip_grad_value(i, o):
    torch.nn.utils.clip_grad_value_(parameters(i), o["clip_value"])
    return i


def grads_scale(i, o):
    for g in i[1:]:
        g.mul_(i[0][0])
    return i


def quantile(i, o):
    return torch.quantile(i[0], i[1].detach(), dim=dim(o), keepdim=o["keepdim"],
                          interpolation=o["interpolation"])


def repeat_interleave(i, o):
    n = i[1] if i[1].ndim > 0 else i[1].item()
    return i[0].repeat_interleave(n, dim=dim(o))


def roll(i, o):
    return i[0].roll(o["shifts"], dims(o)) if "dims" in o else i[0].roll(o["shifts"])


def reduced_at(name):
    return lambda i, o: getattr(i[0], name)(dim(o), i[1], i[2], o["reduce"],
                                            include_self=o["include_self"])


def windows(f):
    return lambda i, o: f(i[0], *([o["output_size"]] if "output_size" in o else []),
                          o["kernel_size"], dilation=o["dilation"], padding=o["padding"],
                          stride=o["stride"])


def searched(f):
    return lambda i, o: f(i[0], i[1], right=o["right"])


def widened(x):
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def special(name):
    """A function of torch.special, which take no halves."""
    def call(i, o):
        y = getattr(torch.special, name)(*(
            widened(x) if x.is_floating_point() else x.float() for x in i))
        return y.to(i[0].dtype if i[0].is_floating_point() else torch.float32)
    return call


def digamma(i, o):
    """With exact derivatives: PyTorch's first is good to 1e-9."""
    x = i[0].detach()
    if not i[0].requires_grad:
        return torch.digamma(x)
    d = i[0] - x
    return torch.digamma(x) + d * torch.special.zeta(2, x) - d * d * torch.special.zeta(3, x)


def lgamma(i, o):
    """With exact derivatives: PyTorch's second is good to 1e-9."""
    x = i[0].detach()
    if not i[0].requires_grad or x.dtype != torch.float64:
        return torch.lgamma(i[0])
    d = i[0] - x
    return torch.lgamma(x) + d * torch.digamma(x) + d * d * torch.special.zeta(2, x) / 2


def moments(name):
    f = getattr(torch, name)
    return lambda i, o: f(i[0], dim=dims(o), keepdim=o["keepdim"])


CALLS = {
    **{name: special(name) for name in (
        "zeta", "entr", "erfcx", "ndtr", "log_ndtr", "ndtri", "i0", "i0e", "i1", "i1e", "xlog1py",
        "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0",
        "scaled_modified_bessel_k1", "spherical_bessel_j0")},
    "igamma": special("gammainc"), "igammac": special("gammaincc"),
    "digamma": digamma, "lgamma": lgamma,
    "hypot": lambda i, o: torch.hypot(*(x if x.is_floating_point() else x.float() for x in i)),
    "isclose": lambda i, o: torch.isclose(i[0], i[1], **o),
    "nan_to_num": lambda i, o: torch.nan_to_num(i[0], **o),
    "addcmul": lambda i, o: torch.addcmul(*i, value=o["value"]),
    "addcdiv": lambda i, o: torch.addcdiv(*i, value=o["value"]),
    "normalize": lambda i, o: F.normalize(i[0], dim=dim(o)),
    "cosine_similarity": lambda i, o: F.cosine_similarity(i[0], i[1], dim=dim(o)),
    "count_nonzero": lambda i, o: torch.count_nonzero(i[0], dim=dims(o)[0]),
    "nansum": lambda i, o: torch.nansum(i[0], dim=dims(o)),
    "nanmean": lambda i, o: torch.nanmean(i[0], dim=dims(o)),
    "var_mean": moments("var_mean"), "std_mean": moments("std_mean"),
    "aminmax": lambda i, o: torch.aminmax(i[0], dim=dim(o), keepdim=o["keepdim"]),
    "median": lambda i, o: torch.median(i[0], dim=dim(o), keepdim=o["keepdim"]),
    "nanmedian": lambda i, o: torch.nanmedian(i[0], dim=dim(o), keepdim=o["keepdim"]),
    "mode": lambda i, o: torch.mode(i[0], dim=dim(o), keepdim=o["keepdim"]),
    "quantile": quantile, "cumprod": along("cumprod"), "logcumsumexp": along("logcumsumexp"),
    "diff": lambda i, o: torch.diff(i[0], n=o["n"], dim=dim(o)),
    "trapezoid": lambda i, o: torch.trapezoid(i[0], dx=o["dx"], dim=dim(o)),
    "cumulative_trapezoid": along("cumulative_trapezoid"),
    "cov": lambda i, o: torch.cov(i[0], correction=o["correction"]),
    "unflatten": lambda i, o: torch.unflatten(i[0], dim(o), o["sizes"]),
    "diag_embed": lambda i, o: torch.diag_embed(i[0], offset=o["offset"]),
    "kthvalue": lambda i, o: torch.kthvalue(i[0], o["k"], dim(o), o["keepdim"]),
    "nanquantile": lambda i, o: torch.nanquantile(
        i[0], o["q"], dim(o), o["keepdim"], interpolation=o["interpolation"]),
    "isin": lambda i, o: torch.isin(i[0], i[1], invert=o["invert"]),
    "hstack": lambda i, o: torch.hstack(i), "vstack": lambda i, o: torch.vstack(i),
    "dstack": lambda i, o: torch.dstack(i), "column_stack": lambda i, o: torch.column_stack(i),
    "logit": lambda i, o: torch.logit(i[0], eps=o.get("eps")),
    "cummax": along("cummax"), "cummin": along("cummin"),
    "tile": lambda i, o: torch.tile(i[0], o["dims"]), "repeat_interleave": repeat_interleave,
    "roll": roll, "rot90": lambda i, o: torch.rot90(i[0], o["k"], dims(o)),
    "unfold": lambda i, o: i[0].unfold(dim(o), o["size"], o["step"]),
    "im2col": windows(F.unfold), "col2im": windows(F.fold),
    "diagonal": lambda i, o: torch.diagonal(i[0], o["offset"], at(o["dim1"]), at(o["dim2"])),
    "diag": lambda i, o: torch.diag(i[0], o["diagonal"]),
    "baddbmm": lambda i, o: torch.baddbmm(*i, beta=o["beta"], alpha=o["alpha"]),
    "cdist": lambda i, o: torch.cdist(i[0], i[1], p=o["p"]),
    "scatter": lambda i, o: i[0].scatter(dim(o), i[1], i[2]),
    "scatter_reduce": reduced_at("scatter_reduce"), "index_reduce": reduced_at("index_reduce"),
    "take_along_dim": lambda i, o: torch.take_along_dim(i[0], i[1], dim(o)),
    "unique": lambda i, o: torch.unique(i[0], **o),
    "unique_consecutive": lambda i, o: torch.unique_consecutive(i[0], **o),
    "bincount": lambda i, o: torch.bincount(*i, minlength=o["minlength"]),
    "histc": lambda i, o: torch.histc(i[0], o["bins"], o["min"], o["max"]),
    "searchsorted": searched(torch.searchsorted), "bucketize": searched(torch.bucketize),
    "broadcast_to": lambda i, o: i[0].broadcast_to(size(o)),
    # of NaN it is NaN, as the reference says; PyTorch gives 0
    "sign": lambda i, o: torch.where(i[0].isnan(), i[0], i[0].sign()),
    "relu": lambda i, o: F.relu(i[0]), "silu": lambda i, o: F.silu(i[0]),
    # of infinity it is infinity; PyTorch gives NaN where it runs in vectors
    "gelu": lambda i, o: torch.where(i[0] == torch.inf, i[0], F.gelu(i[0])),
    "gelu_tanh": lambda i, o: F.gelu(i[0], approximate="tanh"),
    "rms_norm": lambda i, o: F.rms_norm(i[0], o["normalized_shape"], i[1], o.get("eps")),
    "group_norm": lambda i, o: F.group_norm(i[0], o["num_groups"], i[1], i[2], o["eps"]),
    "instance_norm": instance_norm,
    # with an exact derivative: PyTorch's sixth is one of f32
    "hardsigmoid": lambda i, o: F.relu6(i[0] + 3) / 6,
    "glu": lambda i, o: F.glu(i[0], dim(o)), "softmin": lambda i, o: F.softmin(i[0], dim(o)),
    "swiglu": lambda i, o: F.silu(i[0].chunk(2, dim(o))[0]) * i[0].chunk(2, dim(o))[1],
    "clamp": lambda i, o: i[0].clamp(o["min"], o["max"]),
    "sum": reduce("sum"), "mean": reduce("mean"), "amax": reduce("amax"), "amin": reduce("amin"),
    "logsumexp": reduce("logsumexp"), "var": reduce("var"), "std": reduce("std"),
    "prod": one_dim("prod"),
    "norm": lambda i, o: torch.linalg.vector_norm(i[0], dim=dims(o), keepdim=o["keepdim"]),
    # has no derivative there
    "floor_divide": lambda i, o: torch.floor_divide(i[0].detach(), i[1].detach()),
    "any": lambda i, o: i[0].any(dims(o)[0]), "all": lambda i, o: i[0].all(dims(o)[0]),
    "argmax": along("argmax"), "argmin": along("argmin"), "max": along("max"), "min": along("min"),
    "cumsum": along("cumsum"), "softmax": along("softmax"), "log_softmax": along("log_softmax"),
    "sort": lambda i, o: torch.sort(i[0], dim=dim(o), descending=o["descending"], stable=True),
    "argsort": along("argsort"), "topk": lambda i, o: torch.topk(i[0], o["k"], dim=dim(o)),
    "tril": lambda i, o: i[0].tril(o["diagonal"]), "triu": lambda i, o: i[0].triu(o["diagonal"]),
    "transpose": lambda i, o: i[0].transpose(at(o["dim0"]), at(o["dim1"])),
    "unsqueeze": lambda i, o: i[0].unsqueeze(dim(o)), "squeeze": lambda i, o: i[0].squeeze(),
    "flip": lambda i, o: i[0].flip(dims(o)),
    "masked_fill": lambda i, o: i[0].masked_fill(i[1], o["value"]),
    "index_select": lambda i, o: i[0].index_select(dim(o), i[1]),
    "gather": lambda i, o: i[0].gather(dim(o), i[1]),
    "scatter_add": lambda i, o: i[0].scatter_add(dim(o), i[1], i[2]),
    "index_add": lambda i, o: i[0].index_add(dim(o), i[1], i[2], alpha=o["alpha"]),
    "masked_select": lambda i, o: i[0].masked_select(i[1]),
    "view": lambda i, o: i[0].reshape(size(o)), "reshape": lambda i, o: i[0].reshape(size(o)),
    "expand": lambda i, o: i[0].expand(size(o)),
    "permute": lambda i, o: i[0].permute(dims(o)),
    "movedim": lambda i, o: i[0].movedim([at(d) for d in o["source"]],
                                         [at(d) for d in o["destination"]]),
    "select": lambda i, o: i[0].select(dim(o), at(o["index"])),
    "narrow": lambda i, o: i[0].narrow(dim(o), o["start"] - 1, o["length"]), "slice": slice_of,
    "grads_norm": lambda i, o: [torch.nn.utils.get_total_norm(i, o["p"])] + i,
    "grads_scale": grads_scale, "clip_grad_norm": clip_grad_norm,
    "clip_grad_value": clip_grad_value,
    "embedding": lambda i, o: F.embedding(i[1], i[0]),
    "embedding_bag": lambda i, o: F.embedding_bag(i[1], i[0], **o),
    "one_hot": lambda i, o: F.one_hot(i[0], o["num_classes"]),
    "cat": lambda i, o: torch.cat(i, dim(o)), "stack": lambda i, o: torch.stack(i, dim(o)),
    "linear": lambda i, o: F.linear(*i),
    "addmm": lambda i, o: torch.addmm(*i, beta=o["beta"], alpha=o["alpha"]),
    "batch_norm": batch_norm,
    "layer_norm": lambda i, o: F.layer_norm(i[0], o["normalized_shape"], i[1], i[2], o["eps"]),
    "cross_entropy": lambda i, o: F.cross_entropy(
        i[0], i[1], label_smoothing=o["label_smoothing"], reduction=o["reduction"]),
    "ctc_loss": lambda i, o: F.ctc_loss(i[0].transpose(0, 1), *i[1:], **o),
    "mse_loss": loss(F.mse_loss), "l1_loss": loss(F.l1_loss),
    "binary_cross_entropy_with_logits": loss(F.binary_cross_entropy_with_logits),
    "scaled_dot_product_attention": lambda i, o: F.scaled_dot_product_attention(
        *i, is_causal=bool(o["causal"])),
}


def tensor(x):
    return torch.tensor(x["values"], dtype=torch.float64).reshape(x["shape"]).to(DTYPES[x["dtype"]])


def weights(t):
    """Numbers by which the elements of a result are told apart."""
    w = torch.sin(torch.arange(1, t.numel() + 1, dtype=torch.float64) * 0.37)
    return w.reshape(t.shape).to(t.dtype)


def second_gradients(y, leaves):
    """Of the sum of the squares of the gradients, weighed; None where there is no leaf."""
    wanted = [x for x in leaves if x.requires_grad]
    grads = torch.autograd.grad((y * weights(y)).sum(), wanted, create_graph=True,
                                allow_unused=True)
    total = sum(((g * g * weights(g)).sum() for g in grads if g is not None), torch.zeros(()))
    again = iter(torch.autograd.grad(total, wanted, allow_unused=True, retain_graph=True)
                 if total.requires_grad else [None] * len(wanted))
    found = [next(again) if x.requires_grad else None for x in leaves]
    return [torch.zeros_like(x) if g is None and x.requires_grad else g
            for x, g in zip(leaves, found)]


def call(case, inputs):
    """Results, what is compared besides, and the leaves of the gradients."""
    if case.get("layer"):
        results, besides, parameters = layers.run_layer(case, inputs, tensor)
        return results, besides, inputs + parameters
    if case.get("room"):
        return rooms.run(case, inputs), [], inputs
    if case.get("optimizer"):
        return layers.run_optimizer(case, inputs), [], []
    if case.get("scheduler"):
        return layers.run_scheduler(case), [], []
    f, o, given, args = CALLS.get(case["op"]), case["options"] or {}, inputs, case.get("args") or []
    named = case.get("named") or []
    if named:
        given, o = inputs[:-len(named)], dict(o, **dict(zip(named, inputs[-len(named):])))
    if not f and hasattr(F, case["op"]):
        y = getattr(F, case["op"])(*given, *args, **layers.options({"options": o}))
    else:
        y = f(given, o) if f else getattr(torch, case["op"])(*given, *args)
    return [y] if torch.is_tensor(y) else list(y), [], inputs


def run(case):
    """Results, gradients by the leaves, and second ones where the case asks for them."""
    inputs = [tensor(x) for x in case["inputs"]]
    for x, declared in zip(inputs, case["inputs"]):
        wide = x.dtype in (torch.float32, torch.float64)
        if wide and not (declared.get("special") or declared.get("fixed") or case.get("in_place")):
            x.requires_grad_()
    results, besides, leaves = call(case, inputs)
    grads, second = [None] * len(leaves), []
    first = results[0]
    if leaves and first.requires_grad and first.numel() > 0:
        if case.get("second"):
            try:
                second = second_gradients(first, leaves)
            except RuntimeError as e:  # of some losses PyTorch has none
                if "is not implemented" not in str(e):
                    raise
        (first * weights(first)).sum().backward()
        grads = [x.grad for x in leaves]
    return results + besides, grads, second


def difference(got, want):
    """0 for equal values, infinity where one is not a number or infinite and the other is not."""
    a, b = tensor(got).to(torch.float64), want.detach().to(torch.float64)
    if a.numel() == 0:
        return 0.0
    d = (a - b).abs() / b.abs().clamp(min=1)
    same = (a == b) | (a.isnan() & b.isnan())
    return d.masked_fill(same, 0).nan_to_num(nan=float("inf")).max().item()


def compare(case):
    """Text of what is wrong or None, and the largest difference."""
    answer, worst = case["answer"], 0.0
    try:
        results, grads, second = run(case)
    except (RuntimeError, IndexError, ValueError, TypeError) as e:
        return (None, 0.0) if "error" in answer else ("PyTorch refuses: " + str(e)[:150], 0.0)
    if "error" in answer:
        return "ltrain refuses: " + answer["error"][:200], 0.0
    pairs = list(zip(answer["results"], results)) + [
        (g, w) for g, w in zip(answer["grads"], grads) if w is not None] + [
        (g, w) for g, w in zip(answer.get("second") or [], second) if w is not None]
    for got, want in pairs:
        if not got:
            return "no gradient", worst
        if got["shape"] != list(want.shape) or got["dtype"] != NAMES[want.dtype]:
            return "%s %s, PyTorch %s %s" % (got["dtype"], got["shape"], NAMES[want.dtype],
                                             list(want.shape)), worst
        d = difference(got, want)
        worst = max(worst, d)
        if d > TOLERANCE.get(got["dtype"], 0):
            return "differs by %.3g" % d, worst
    return None, worst


def described(t):
    if t is None:
        return None
    if t._is_zerotensor():  # zeros that have no memory
        t = torch.zeros(t.shape, dtype=t.dtype)
    values = t.detach().to(torch.float64).flatten().tolist()
    if t.dtype == torch.float32:
        values = [float("%.8g" % v) for v in values]
    return {"dtype": NAMES[t.dtype], "shape": list(t.shape), "values": values}


def worth_recording(case, already):
    """Small cases, and a first one of each op."""
    given = case["inputs"] + (case.get("state") or [])
    small = sum(len(x["values"]) for x in given) <= 24
    return small or all(other["op"] != case["op"] for other in already)


def rows(cases):
    """PyTorch's answers, for spec/parity/recorded_spec.lua."""
    for case in cases:
        results, grads, second = run(case)
        yield {**case, "options": case["options"] or {},
               "answer": {"results": [described(t) for t in results],
                          "grads": [described(t) for t in grads],
                          "second": [described(t) for t in second]}}


def main():
    lines = open(sys.argv[1])
    head = json.loads(next(lines))
    worst, wrong, count, agreed = {}, [], 0, []
    for line in lines:
        case = json.loads(line)
        text, d = compare(case)
        count += 1
        worst[case["op"]] = max(worst.get(case["op"], 0.0), d)
        if not text and "error" not in case["answer"] and worth_recording(case, agreed):
            agreed.append(case)
        if text:
            wrong.append("%s %s %s: %s" % (
                case["op"], [(x["dtype"], x["shape"]) for x in case["inputs"]],
                case["options"] or "", text))
    for name in sorted(worst):
        print("%-36s %.3g" % (name, worst[name]))
    print("left out: " + "; ".join(head["left_out"]))
    print("no row for: " + (", ".join(head["lacking"]) or "none"))
    for text in wrong:
        print("differs: " + text)
    print("%d cases, %d differ, against PyTorch %s" % (count, len(wrong), torch.__version__))
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w") as out:
            recorded.write("spec/parity/compare.py", torch, rows(agreed), out)
    return 1 if wrong or head["lacking"] else 0


if __name__ == "__main__":
    sys.exit(main())
