# spec/distributions/torch_values.py: writes spec/distributions/torch_values.lua, values of
# torch.distributions in f64:
#
#   python spec/distributions/torch_values.py > spec/distributions/torch_values.lua
import torch
from torch import distributions as d

torch.set_default_dtype(torch.float64)
t = torch.tensor
TRIL_P, TRIL_Q = t([[1.2, 0.0], [0.5, 0.7]]), t([[0.8, 0.0], [-0.3, 1.5]])
# Lua for p and q, the same in Python, and where log_prob is taken.
CASES = [
    ("Normal(t{0.5, -1.0}, t{0.3, 2.0})", "Normal(t{0.0, 1.0}, 1.5)",
     d.Normal(t([0.5, -1.0]), t([0.3, 2.0])), d.Normal(t([0.0, 1.0]), 1.5), [0.2, 3.0]),
    ("Bernoulli(t{0.2, 0.9})", "Bernoulli{logits = t{0.3, -2.0}}",
     d.Bernoulli(t([0.2, 0.9])), d.Bernoulli(logits=t([0.3, -2.0])), [1.0, 0.0]),
    ("Bernoulli{logits = t{0.3, -30.0}}", "Bernoulli(t{0.5, 0.25})",
     d.Bernoulli(logits=t([0.3, -30.0])), d.Bernoulli(t([0.5, 0.25])), [0.0, 1.0]),
    ("Categorical(t{{1.0, 2.0, 3.0}, {0.5, 0.25, 0.25}})",
     "Categorical{logits = t{{0.1, -1.0, 2.0}, {0.0, 0.0, 1.0}}}",
     d.Categorical(t([[1.0, 2.0, 3.0], [0.5, 0.25, 0.25]])),
     d.Categorical(logits=t([[0.1, -1.0, 2.0], [0.0, 0.0, 1.0]])), [2, 0]),
    ("Beta(t{0.5, 2.5}, t{1.5, 30.0})", "Beta(t{2.0, 2.0}, 0.7)",
     d.Beta(t([0.5, 2.5]), t([1.5, 30.0])), d.Beta(t([2.0, 2.0]), t([0.7, 0.7])), [0.3, 0.05]),
    ("Gamma(t{0.3, 7.0}, t{1.5, 0.2})", "Gamma(t{2.0, 2.0}, 0.7)",
     d.Gamma(t([0.3, 7.0]), t([1.5, 0.2])), d.Gamma(t([2.0, 2.0]), t([0.7, 0.7])), [0.3, 40.0]),
    ("Uniform(t{0.0, -1.0}, t{2.0, 3.0})", "Uniform(-1.0, t{2.5, 2.0})",
     d.Uniform(t([0.0, -1.0]), t([2.0, 3.0]), validate_args=False),
     d.Uniform(t([-1.0, -1.0]), t([2.5, 2.0])), [1.0, 5.0]),
    ("Exponential(t{0.5, 4.0})", "Exponential(2.0)",
     d.Exponential(t([0.5, 4.0])), d.Exponential(t([2.0, 2.0])), [0.1, 1.5]),
    ("Laplace(t{0.5, -1.0}, t{0.3, 2.0})", "Laplace(0.0, 1.5)",
     d.Laplace(t([0.5, -1.0]), t([0.3, 2.0])), d.Laplace(t([0.0, 0.0]), t([1.5, 1.5])),
     [0.2, 3.0]),
    ("MultivariateNormal(t{0.5, -1.0}, {scale_tril = t{{1.2, 0.0}, {0.5, 0.7}}})",
     "MultivariateNormal(t{0.1, 0.2}, {covariance_matrix = t{{0.64, -0.24}, {-0.24, 2.34}}})",
     d.MultivariateNormal(t([0.5, -1.0]), scale_tril=TRIL_P),
     d.MultivariateNormal(t([0.1, 0.2]), covariance_matrix=t([[0.64, -0.24], [-0.24, 2.34]])),
     [0.7, 0.4]),
]


def lua(x):
    words = [f"{v:.15g}" if abs(v) != float("inf") else ("1 / 0" if v > 0 else "-1 / 0")
             for v in x.flatten().tolist()]
    return "{ " + ", ".join(words) + " }"


print("-- Made by spec/distributions/torch_values.py, with PyTorch", torch.__version__)
print("-- { p, q, where, log_prob, entropy, mean, variance, KL(p || q) }\nreturn {")
for code_p, code_q, p, q, at in CASES:
    value = torch.tensor(at)
    rows = [p.log_prob(value), p.entropy(), p.mean, p.variance, d.kl_divergence(p, q)]
    print(f'  {{ "{code_p}",\n    "{code_q}",\n    {lua(value)},')
    for row in rows:
        blank = isinstance(p, d.Categorical) and row.isnan().any()
        print("    " + ("false" if blank else lua(row)) + ",")
    print("  },")
print("}")
