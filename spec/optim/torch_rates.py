# spec/optim/torch_rates.py: writes torch_rates.jsonl, the learning rates (and momenta) of PyTorch's
# schedulers: rates of two groups, momentum of the first.
#
#   python spec/optim/torch_rates.py > spec/optim/torch_rates.jsonl
import pathlib
import sys
import warnings

import torch
from torch.optim import lr_scheduler as s
from torch.optim.swa_utils import SWALR

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import recorded  # noqa: E402

warnings.simplefilter("ignore")
STEPS = 24
# What Lua writes after the optimizer, and the scheduler.
CASES = [
    ("MultiStepLR(o, { 3, 8, 8, 15 }, { gamma = 0.5 })",
     lambda o: s.MultiStepLR(o, [3, 8, 8, 15], gamma=0.5)),
    ("ExponentialLR(o, 0.9)", lambda o: s.ExponentialLR(o, 0.9)),
    ("ConstantLR(o)", s.ConstantLR),
    ("ConstantLR(o, { factor = 0.25, total_iters = 7 })", lambda o: s.ConstantLR(o, 0.25, 7)),
    ("LinearLR(o)", s.LinearLR),
    ("LinearLR(o, { start_factor = 1.0, end_factor = 0.1, total_iters = 9 })",
     lambda o: s.LinearLR(o, 1.0, 0.1, 9)),
    ("PolynomialLR(o)", s.PolynomialLR),
    ("PolynomialLR(o, { total_iters = 11, power = 2.0 })", lambda o: s.PolynomialLR(o, 11, 2.0)),
    ("CosineAnnealingLR(o, 7, { eta_min = 0.1 })", lambda o: s.CosineAnnealingLR(o, 7, 0.1)),
    ("CosineAnnealingWarmRestarts(o, 5)", lambda o: s.CosineAnnealingWarmRestarts(o, 5)),
    ("CosineAnnealingWarmRestarts(o, 3, { T_mult = 2, eta_min = 0.05 })",
     lambda o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.05)),
    ("CyclicLR(o, 0.1, 0.5, { step_size_up = 4 })", lambda o: s.CyclicLR(o, 0.1, 0.5, 4)),
    ("CyclicLR(o, 0.1, 0.5, { step_size_up = 3, step_size_down = 5, mode = 'triangular2' })",
     lambda o: s.CyclicLR(o, 0.1, 0.5, 3, 5, "triangular2")),
    ("CyclicLR(o, 0.1, 0.5, { step_size_up = 3, mode = 'exp_range', gamma = 0.9, "
     "base_momentum = 0.5, max_momentum = 0.7 })",
     lambda o: s.CyclicLR(o, 0.1, 0.5, 3, mode="exp_range", gamma=0.9, base_momentum=0.5,
                          max_momentum=0.7)),
    ("SWALR(o, 0.05)", lambda o: SWALR(o, 0.05)),
    ("SWALR(o, { 0.05, 0.3 }, { anneal_epochs = 4, anneal_strategy = 'linear' })",
     lambda o: SWALR(o, [0.05, 0.3], 4, "linear")),
    ("SWALR(o, { swa_lr = 0.05, anneal_epochs = 0 })", lambda o: SWALR(o, 0.05, 0)),
    ("OneCycleLR(o, 0.5, { total_steps = 24 })", lambda o: s.OneCycleLR(o, 0.5, 24)),
    ("OneCycleLR(o, 0.5, { epochs = 4, steps_per_epoch = 7, three_phase = true, "
     "anneal_strategy = 'linear', div_factor = 10.0, pct_start = 0.4 })",
     lambda o: s.OneCycleLR(o, 0.5, epochs=4, steps_per_epoch=7, three_phase=True,
                            anneal_strategy="linear", div_factor=10.0, pct_start=0.4)),
    ("OneCycleLR(o, 0.5, { total_steps = 30, cycle_momentum = false, final_div_factor = 10.0 })",
     lambda o: s.OneCycleLR(o, 0.5, 30, cycle_momentum=False, final_div_factor=10.0)),
    ("SequentialLR(o, { optim.LinearLR(o, { total_iters = 4 }), optim.ExponentialLR(o, 0.8), "
     "optim.CosineAnnealingLR(o, 6) }, { 4, 11 })",
     lambda o: s.SequentialLR(o, [s.LinearLR(o, total_iters=4), s.ExponentialLR(o, 0.8),
                                  s.CosineAnnealingLR(o, 6)], [4, 11])),
    ("ChainedScheduler({ optim.ConstantLR(o, { factor = 0.5, total_iters = 6 }), "
     "optim.ExponentialLR(o, 0.9), optim.StepLR(o, 5) })",
     lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.5, 6), s.ExponentialLR(o, 0.9),
                                   s.StepLR(o, 5)])),
    ("MultiplicativeLR(o, function(n) return 1 - 0.5 / (n + 1) end)",
     lambda o: s.MultiplicativeLR(o, lambda n: 1 - 0.5 / (n + 1))),
]


def rates(make, kind):
    w = [torch.nn.Parameter(torch.ones(1)) for _ in range(2)]
    groups = [{"params": [w[0]]}, {"params": [w[1]], "lr": 0.2}]
    optimizer = torch.optim.SGD(groups, lr=0.8, momentum=0.6) if kind == "SGD" \
        else torch.optim.Adam(groups, lr=0.8)
    scheduler, first, second, momentum = make(optimizer), [], [], []
    for _ in range(STEPS):
        a, b = optimizer.param_groups
        first.append(a["lr"])
        second.append(b["lr"])
        momentum.append(a["momentum"] if kind == "SGD" else a["betas"][0])
        optimizer.step()
        scheduler.step()
    return first, second, momentum


def rows():
    for code, make in CASES:
        for kind in ("SGD", "Adam"):
            if kind == "Adam" and "Cycl" not in code:
                continue
            first, second, momenta = (recorded.rounded(row, 12) for row in rates(make, kind))
            yield {"code": code, "optimizer": kind, "rates": [first, second], "momenta": momenta}


recorded.write("spec/optim/torch_rates.py", torch, rows())
