# spec/distributions/torch_values.py: writes torch_values.jsonl, values of
# torch.distributions in f64:
#
#   python spec/distributions/torch_values.py > spec/distributions/torch_values.jsonl
import pathlib
import sys

import torch
from torch import distributions as d

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import recorded  # noqa: E402

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
    ("Uniform(t{0.0, -1.0}, t{2.0, 3.0}, {validate_args = false})", "Uniform(-1.0, t{2.5, 2.0})",
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
    ("Dirichlet(t{{0.5, 2.5, 1.2}, {3.0, 2.0, 4.0}})", "Dirichlet(t{2.0, 2.0, 0.7})",
     d.Dirichlet(t([[0.5, 2.5, 1.2], [3.0, 2.0, 4.0]])),
     d.Dirichlet(t([[2.0, 2.0, 0.7], [2.0, 2.0, 0.7]])), [[0.2, 0.3, 0.5], [0.7, 0.1, 0.2]]),
    ("StudentT(t{5.0, 4.5}, t{0.5, -1.0}, 2.0)", None,
     d.StudentT(t([5.0, 4.5]), t([0.5, -1.0]), 2.0), None, [0.2, 3.0]),
    ("StudentT{df = t{5.0, 7.5}}", None, d.StudentT(t([5.0, 7.5])), None, [0.2, 3.0]),
    ("Poisson(t{0.5, 40.0})", "Poisson(t{2.5, 30.0})",
     d.Poisson(t([0.5, 40.0])), d.Poisson(t([2.5, 30.0])), [2.0, 37.0]),
    ("LogNormal(t{0.5, -1.0}, t{0.3, 0.4})", "LogNormal(t(0.2), 1.5)",
     d.LogNormal(t([0.5, -1.0]), t([0.3, 0.4])), d.LogNormal(t(0.2), t(1.5)), [0.2, 3.0]),
    ("Geometric(t{0.2, 0.9})", "Geometric{logits = t{0.3, -2.0}}",
     d.Geometric(t([0.2, 0.9])), d.Geometric(logits=t([0.3, -2.0])), [3.0, 0.0]),
    ("NegativeBinomial(t{3.0, 10.5}, t{0.2, 0.7})", None,
     d.NegativeBinomial(t([3.0, 10.5]), t([0.2, 0.7])), None, [2.0, 30.0]),
    ("NegativeBinomial{total_count = 2.0, logits = t{0.3, -1.0}}", None,
     d.NegativeBinomial(2.0, logits=t([0.3, -1.0])), None, [2.0, 0.0]),
    ("Binomial(7, t{0.2, 0.9})", "Binomial(7, t{0.4, 0.6})",
     d.Binomial(7, t([0.2, 0.9])), d.Binomial(7, t([0.4, 0.6])), [3.0, 7.0]),
    ("Binomial{total_count = 100, logits = t{0.3, -2.0}}", "Binomial(100, t{0.4, 0.6})",
     d.Binomial(100, logits=t([0.3, -2.0])), d.Binomial(100, t([0.4, 0.6])), [60.0, 0.0]),
    ("Gumbel(t{0.5, -1.0}, t{0.3, 2.0})", "Gumbel(t(0.2), 1.5)",
     d.Gumbel(t([0.5, -1.0]), t([0.3, 2.0])), d.Gumbel(t([0.2, 0.2]), t([1.5, 1.5])), [0.2, 3.0]),
    ("Weibull(t{0.5, 3.0}, t{1.3, 2.0})", None,
     d.Weibull(t([0.5, 3.0]), t([1.3, 2.0])), None, [0.2, 3.0]),
    ("OneHotCategorical(t{1.0, 2.0, 3.0})", "OneHotCategorical{logits = t{0.1, -1.0, 2.0}}",
     d.OneHotCategorical(t([1.0, 2.0, 3.0])), d.OneHotCategorical(logits=t([0.1, -1.0, 2.0])),
     [0.0, 1.0, 0.0]),
    ("Independent(D.Normal(t{{0.5, -1.0}, {0.0, 2.0}}, 2.0), 1)",
     "Independent(D.Normal(t{{0.0, 1.0}, {1.0, 1.0}}, 1.5), 1)",
     d.Independent(d.Normal(t([[0.5, -1.0], [0.0, 2.0]]), 2.0), 1),
     d.Independent(d.Normal(t([[0.0, 1.0], [1.0, 1.0]]), 1.5), 1), [[0.2, 3.0], [1.0, 0.5]]),
    ("MixtureSameFamily(D.Categorical(t{0.3, 0.7}), D.Normal(t{{0.5, -1.0}, {2.0, 3.0}}, 0.7))",
     None,
     d.MixtureSameFamily(d.Categorical(t([[0.3, 0.7]] * 2)),
                         d.Normal(t([[0.5, -1.0], [2.0, 3.0]]), 0.7)), None, [0.2, 3.0]),
    ("MixtureSameFamily(D.Categorical(t{0.3, 0.7}), D.Independent(D.Normal("
     "t{{0.5, -1.0, 0.0}, {2.0, 3.0, 1.0}}, 0.7), 1))", None,
     d.MixtureSameFamily(d.Categorical(t([0.3, 0.7])), d.Independent(d.Normal(
         t([[0.5, -1.0, 0.0], [2.0, 3.0, 1.0]]), 0.7), 1)), None, [0.2, 3.0, 0.4]),
    ("TransformedDistribution(D.Normal(t{0.5, -0.2}, 0.4), {D.AffineTransform(0.1, -2.0), "
     "D.SigmoidTransform()})", None,
     d.TransformedDistribution(d.Normal(t([0.5, -0.2]), 0.4), [
         d.AffineTransform(0.1, -2.0), d.SigmoidTransform()]), None, [0.2, 0.6]),
    ("TransformedDistribution(D.Normal(t{0.5, -0.2}, 0.4), D.TanhTransform())", None,
     d.TransformedDistribution(d.Normal(t([0.5, -0.2]), 0.4), [
         d.TanhTransform()]), None, [0.2, -0.6]),
    ("TransformedDistribution(D.Normal(t{0.5, -0.2}, 0.4), {D.ComposeTransform{D.ExpTransform(), "
     "D.AffineTransform(0.1, t{2.0, 3.0}, 1)}})", None,
     d.TransformedDistribution(d.Normal(t([0.5, -0.2]), 0.4), [d.ComposeTransform([
         d.ExpTransform(), d.AffineTransform(0.1, t([2.0, 3.0]), 1)])]), None, [2.2, 1.6]),
    ("LowRankMultivariateNormal(t{0.5, -1.0, 0.2}, t{{1.0}, {0.5}, {-0.3}}, t{0.3, 0.8, 1.1})",
     None,
     d.LowRankMultivariateNormal(t([0.5, -1.0, 0.2]), t([[1.0], [0.5], [-0.3]]),
                                 t([0.3, 0.8, 1.1])), None, [0.7, 0.4, 0.0]),
]
# By name, where PyTorch has them: f(p, value).
FACTS = {
    "log_prob": lambda p, at: p.log_prob(at), "entropy": lambda p, at: p.entropy(),
    "mean": lambda p, at: p.mean, "variance": lambda p, at: p.variance,
    "stddev": lambda p, at: p.stddev, "mode": lambda p, at: p.mode,
    "cdf": lambda p, at: p.cdf(at), "icdf": lambda p, at: p.icdf(t(0.3)),
}
# Where gamma's implicit derivative is compared: concentration, sample, derivative.
GAMMA = [(a, x * a) for a in (0.05, 0.5, 1.0, 3.0, 7.9, 8.5, 30.0, 1000.0)
         for x in (0.6, 0.93, 1.0, 1.08, 1.5)]


def values(x):
    return recorded.rounded(x.to(torch.float64).flatten().tolist(), 15)


def rows():
    """Facts of p at `at`, KL(p || q) and p.icdf(0.3); then {concentration, sample, derivative}."""
    for code_p, code_q, p, q, at in CASES:
        value = torch.tensor(at)
        row = {"p": code_p, "at": values(value), "shape": list(value.shape)}
        if q is not None:
            row.update(q=code_q, kl=values(d.kl_divergence(p, q)))
        for name, fact in FACTS.items():
            if name == "cdf" and type(p) is d.Gamma:
                continue  # the incomplete gamma function is not an operation here
            try:
                row[name] = values(fact(p, value))
            except (NotImplementedError, AttributeError):
                pass
        yield row
    for a, x in GAMMA:
        yield {"gamma": [a, x, float(f"{torch._standard_gamma_grad(t(a), t(x)).item():.15g}")]}


recorded.write("spec/distributions/torch_values.py", torch, rows())
