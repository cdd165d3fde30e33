# spec/nn/torch_losses.py: the numbers of torch_losses.jsonl, from PyTorch.
#
#   python spec/nn/torch_losses.py > spec/nn/torch_losses.jsonl
#
# Inputs are sines, which the spec makes too: see `made`. The gradient is that of the first input, for
# the sum of the losses times 1, 2, 3, ...
import pathlib
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import recorded  # noqa: E402

I = torch.tensor
CASES = [  # op, inputs by kind and shape, or as they are; options
    ("smooth_l1_loss", [("r", 3, 4), ("r", 3, 4)], {"beta": 0.7}),
    ("smooth_l1_loss", [("r", 3, 4), ("r", 3, 4)], {"beta": 0.0}),
    ("huber_loss", [("r", 3, 4), ("r", 3, 4)], {"delta": 0.7}),
    ("binary_cross_entropy", [("u", 3, 4), ("u", 3, 4), ("u", 4)], {}),
    ("binary_cross_entropy_with_logits", [("r", 3, 4), ("u", 3, 4), ("u", 3, 1), ("u", 4)], {}),
    ("kl_div", [("r", 3, 4), ("u", 3, 4)], {}),
    ("kl_div", [("r", 3, 4), ("r", 3, 4)], {"log_target": True, "reduction": "batchmean"}),
    ("nll_loss", [("r", 3, 5), I([1, 4, 0]), ("u", 5)], {"ignore_index": 4}),
    ("nll_loss", [("r", 2, 3, 4), I([[0, 2, 1, 1], [2, 2, 0, 1]])], {}),
    ("poisson_nll_loss", [("r", 3, 4), ("u", 3, 4)], {"full": True}),
    ("poisson_nll_loss", [("u", 3, 4), ("u", 3, 4)], {"log_input": False}),
    ("gaussian_nll_loss", [("r", 3, 4), ("r", 3, 4), ("u", 3, 1)], {"full": True}),
    ("gaussian_nll_loss", [("r", 3, 4), ("r", 3, 4), ("u", 3, 4)], {}),
    ("soft_margin_loss", [("r", 3, 4), ("s", 3, 4)], {}),
    ("hinge_embedding_loss", [("r", 3, 4), ("s", 3, 4)], {"margin": 0.4}),
    ("cosine_embedding_loss", [("r", 3, 4), ("r", 3, 4), ("s", 3)], {"margin": 0.1}),
    ("margin_ranking_loss", [("r", 3), ("r", 3), ("s", 3)], {"margin": 0.4}),
    ("triplet_margin_loss", [("r", 3, 4), ("r", 3, 4), ("r", 3, 4)], {"margin": 0.4, "swap": True}),
    ("triplet_margin_loss", [("r", 3, 4), ("r", 3, 4), ("r", 3, 4)], {"p": 1.0}),
    ("multilabel_soft_margin_loss", [("r", 3, 4), ("u", 3, 4), ("u", 4)], {}),
    ("multilabel_margin_loss", [("r", 3, 4), I([[3, 0, -1, 1], [-1, 2, 2, 2], [0, 1, 2, 3]])], {}),
    ("multilabel_margin_loss", [("r", 4), I([3, 0, -1, 1])], {}),
    ("multi_margin_loss", [("r", 3, 4), I([3, 0, 1]), ("u", 4)], {"p": 2, "margin": 0.6}),
    ("multi_margin_loss", [("r", 4), I(2)], {}),
]
WEIGHTS = {"binary_cross_entropy": ["weight"], "nll_loss": ["weight"],
           "binary_cross_entropy_with_logits": ["weight", "pos_weight"],
           "multi_margin_loss": ["weight"], "multilabel_soft_margin_loss": ["weight"]}


def made(kind, *shape, place):
    n = torch.Size(shape).numel()
    x = torch.sin(torch.arange(n, dtype=torch.float64) * 1.7 + place).view(shape)
    return {"r": 2 * x, "u": 0.5 + 0.45 * x, "s": x.sign()}[kind]


def plain(v):
    """Tensors as lists, floats with 9 digits."""
    if isinstance(v, torch.Tensor):
        return plain(v.detach().tolist())
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    return float(f"{v:.9g}") if isinstance(v, float) else v


def case(k, op, inputs, options):
    options = {"reduction": ["mean", "sum", "none"][k % 3], **options}
    tensors = [x if isinstance(x, torch.Tensor) else made(*x, place=k + 3 * i)
               for i, x in enumerate(inputs)]
    tensors[0].requires_grad_(True)
    names = WEIGHTS.get(op, [])
    y = getattr(F, op)(*tensors[:2 if names else None],
                       **dict(zip(names, tensors[2:])), **options)
    w = torch.arange(1, y.numel() + 1, dtype=torch.float64).view(y.shape)
    (y * w).sum().backward()
    return {"op": op, "inputs": plain(inputs), "options": options, "result": plain(y.flatten()),
            "grad": plain(tensors[0].grad.flatten())}


recorded.write("spec/nn/torch_losses.py", torch, (case(k, *c) for k, c in enumerate(CASES)))
