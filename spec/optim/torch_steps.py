# spec/optim/torch_steps.py: writes torch_steps.jsonl, what PyTorch's optimizers make of random
# parameters in 100 steps:
#
#   python spec/optim/torch_steps.py > spec/optim/torch_steps.jsonl
#
# Parameters and gradients are the numbers of a congruential generator, which the spec has too.
# Parameters in bf16 and f16 are stepped as ltrain does: the state is f32, each step is rounded.
# PyTorch has no Lion: it is written here as its paper has it. Muon is in f64, where PyTorch rounds
# to bf16.
import pathlib
import sys

import torch
from torch.optim import _muon

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import recorded  # noqa: E402

SHAPES = [(3, 4), (5,)]
STEPS = 100
AT = (1, 10, 100)
DTYPES = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0, maximize=False):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay,
                                      maximize=maximize))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                g = -p.grad if group["maximize"] else p.grad
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_((beta1 * m + (1 - beta1) * g).sign() * group["lr"])
                m.mul_(beta2).add_(g * (1 - beta2))


def newton_schulz(grad, coefficients, steps, eps):
    a, b, c = coefficients
    x = grad.T if grad.size(0) > grad.size(1) else grad
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if grad.size(0) > grad.size(1) else x


_muon._zeropower_via_newtonschulz = newton_schulz

DECAY = dict(weight_decay=0.1)
APART = dict(weight_decay=0.1, decoupled_weight_decay=True)
CASES = [
    ("SGD", dict(lr=0.1, momentum=0.9, weight_decay=0.01, maximize=True)),
    ("SGD", dict(lr=0.1, momentum=0.9, nesterov=True)),
    ("Adam", dict(lr=0.05)), ("Adam", dict(lr=0.05, amsgrad=True, **DECAY)),
    ("Adam", dict(lr=0.05, maximize=True, **APART)),
    ("Adam", dict(lr=0.05, betas=[0.8, 0.95], amsgrad=True, maximize=True, **APART)),
    ("AdamW", dict(lr=0.05, weight_decay=0.2, amsgrad=True)),
    ("NAdam", dict()), ("NAdam", dict(lr=0.05, momentum_decay=0.1, **DECAY)),
    ("NAdam", dict(lr=0.05, betas=[0.8, 0.95], eps=1e-4, maximize=True, **APART)),
    ("RAdam", dict(lr=0.05)), ("RAdam", dict(lr=0.05, betas=[0.8, 0.9], **DECAY)),
    ("RAdam", dict(lr=0.05, eps=1e-4, maximize=True, **APART)),
    ("Adamax", dict()), ("Adamax", dict(lr=0.05, betas=[0.8, 0.95], maximize=True, **DECAY)),
    ("RMSprop", dict()), ("RMSprop", dict(lr=0.02, alpha=0.9, momentum=0.8, **DECAY)),
    ("RMSprop", dict(lr=0.02, centered=True, eps=1e-3)),
    ("RMSprop", dict(lr=0.02, centered=True, momentum=0.5, maximize=True, **DECAY)),
    ("Adagrad", dict()),
    ("Adagrad", dict(lr=0.1, lr_decay=0.05, initial_accumulator_value=0.5, maximize=True, **DECAY)),
    ("Adadelta", dict()), ("Adadelta", dict(lr=0.5, rho=0.8, maximize=True, **DECAY)),
    ("ASGD", dict()), ("ASGD", dict(lr=0.1, lambd=0.1, t0=4.0, maximize=True, **DECAY)),
    ("Rprop", dict()),
    ("Rprop", dict(lr=0.05, etas=[0.4, 1.5], step_sizes=[1e-2, 0.3], maximize=True)),
    ("Adafactor", dict()),
    ("Adafactor", dict(lr=0.3, beta2_decay=-0.5, eps=[0.1, 0.5], d=1.5, maximize=True, **DECAY)),
    ("Lion", dict(lr=0.01)),
    ("Lion", dict(lr=0.01, betas=[0.8, 0.95], weight_decay=0.3, maximize=True)),
    ("Muon", dict(lr=0.02)),
    ("Muon", dict(lr=0.02, momentum=0.3, nesterov=False, adjust_lr_fn="match_rms_adamw",
                  weight_decay=0.0)),
]
LBFGS = [
    dict(max_iter=4, line_search_fn="strong_wolfe"),
    dict(max_iter=5, lr=0.05), dict(max_iter=5, lr=0.05, maximize=True, history_size=3),
    dict(max_iter=20, lr=3.0, history_size=2, line_search_fn="strong_wolfe", maximize=True),
]
HALF = {"AdamW", "NAdam", "RMSprop", "Lion", "Adagrad"}


def generator():
    x = 12345
    while True:
        x = (x * 1103515245 + 12345) % 2**31
        yield x / 2**30 - 1


def tensor(numbers, shape, dtype):
    n = torch.Size(shape).numel()
    return torch.tensor([next(numbers) for _ in range(n)], dtype=torch.float64).to(dtype) \
        .reshape(shape)


def trace(name, options, dtype):
    """The parameters after some steps, in one list each."""
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    torch.set_default_dtype(wide)  # the products of NAdam
    numbers = generator()
    shapes = SHAPES[:1] if name == "Muon" else SHAPES
    params = [tensor(numbers, s, dtype).to(wide).requires_grad_() for s in shapes]
    made = Lion if name == "Lion" else getattr(torch.optim, name)
    optimizer, out = made(params, **options), []
    for step in range(1, STEPS + 1):
        for p in params:
            p.grad = tensor(numbers, p.shape, dtype).to(wide)
        optimizer.step()
        with torch.no_grad():
            for p in params:
                p.copy_(p.to(dtype))
        if step in AT:
            out.append([v for p in params for v in p.detach().flatten().double().tolist()])
    return out


def lbfgs(options):
    """Parameters and numbers of evaluations after some steps on the loss of the spec."""
    torch.set_default_dtype(torch.float64)
    numbers, evaluations, after = generator(), [], []
    params = [tensor(numbers, s, torch.float64).requires_grad_() for s in SHAPES]
    targets = [tensor(numbers, s, torch.float64).abs() + 0.5 for s in SHAPES]
    optimizer = torch.optim.LBFGS(params, **options)
    sign = -1 if options.get("maximize") else 1

    def closure():
        optimizer.zero_grad()
        loss = sum(((p**2 - t) ** 2).sum() for p, t in zip(params, targets)) \
            + 0.1 * (params[0].sum() - params[1].sum()) ** 2
        loss = sign * loss
        loss.backward()
        return loss

    for step in range(1, 7):
        optimizer.step(closure)
        if step in (1, 3, 6):
            evaluations.append(optimizer.state[params[0]]["func_evals"])
            after.append([v for p in params for v in p.detach().flatten().tolist()])
    return evaluations, after


def rows():
    """`after` are the parameters after 1, 10 and 100 steps, LBFGS's after 1, 3 and 6."""
    for name, options in CASES:
        for dtype in DTYPES:
            if name == "Muon" and dtype != "f64" or dtype in ("bf16", "f16") and name not in HALF:
                continue
            digits = 13 if dtype == "f64" else 8
            after = [recorded.rounded(row, digits) for row in trace(name, options, DTYPES[dtype])]
            yield {"class": name, "dtype": dtype, "options": options, "after": after}
    for options in LBFGS:
        evaluations, after = lbfgs(options)
        yield {"class": "LBFGS", "dtype": "f64", "options": options,
               "after": [recorded.rounded(row, 13) for row in after], "evaluations": evaluations}


recorded.write("spec/optim/torch_steps.py", torch, rows())
