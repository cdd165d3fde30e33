"""spec/metrics/torchmetrics_cases.py: random batches for every metric, with what torchmetrics makes of them.

  python torchmetrics_cases.py [--seed N] [--draws N] >cases.jsonl

A line is a case: metric and options as scripts here write them, batches of arguments, and the value.
spec/metrics/recorded.jsonl is the output of seed 1 with 1 draw; ./dev parity compares another.
Where ltrain means to differ, the value is what ltrain says it is, with the reason beside it.
"""
import argparse
import json
import math
import random
import warnings

import torch
import torchmetrics as tm
from torchmetrics import classification as tc

warnings.filterwarnings("ignore")
CASES = []


def short(v):
    v = plain(v)
    return int(v) if isinstance(v, float) and v == int(v) else v


def plain(x):
    """A tensor, number, string or tree of them as JSON."""
    if isinstance(x, torch.Tensor) and x.dtype == torch.bool:
        return {"dtype": "bool", "shape": list(x.shape), "values": x.flatten().tolist()}
    if isinstance(x, torch.Tensor):
        kind = {torch.float32: "f32", torch.float64: "f64", torch.int64: "i64"}[x.dtype]
        return {"dtype": kind, "shape": list(x.shape), "values": [short(v) for v in x.flatten().tolist()]}
    if isinstance(x, float):
        return str(x) if math.isnan(x) or math.isinf(x) else x
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    return x


def result(x):
    """A value as ltrain gives it: single elements are numbers."""
    if isinstance(x, torch.Tensor):
        x = x.detach().double() if x.dtype != torch.bool else x
        return x.item() if x.ndim == 0 else plain(x)
    if isinstance(x, (list, tuple)):
        return [result(v) for v in x]
    if isinstance(x, dict):
        return {k: result(v) for k, v in x.items()}
    return x


def add(name, options, theirs, batches, value=None, tolerance=2e-5, theirs_args=None):
    """theirs: a metric of torchmetrics, or None where value is given."""
    if value is None:
        for batch in batches if theirs_args is None else theirs_args:
            theirs.update(*batch)
        value = result(theirs.compute())
    CASES.append({"metric": name, "options": options, "batches": plain(batches), "value": plain(value),
                  "tolerance": tolerance})


def sizes():
    return [random.randint(1, 6) for _ in range(3)]


def scores(*shape):
    """Scores from 0 to 1, many of them equal."""
    return torch.randint(0, 17, shape).float() / 16


def distinct(*shape):
    """Scores from 0 to 1, no two of them equal."""
    return torch.randperm(math.prod(shape)).reshape(shape).float() / 128


def ids(count, *shape):
    return torch.randint(0, count, shape)


# Classification.

BINARY = {
    "Precision": tc.BinaryPrecision, "Recall": tc.BinaryRecall, "Specificity": tc.BinarySpecificity,
    "F1": tc.BinaryF1Score, "JaccardIndex": tc.BinaryJaccardIndex, "HammingDistance": tc.BinaryHammingDistance,
    "Accuracy": tc.BinaryAccuracy, "StatScores": tc.BinaryStatScores,
}
CLASSES = {
    "Precision": tc.MulticlassPrecision, "Recall": tc.MulticlassRecall, "Specificity": tc.MulticlassSpecificity,
    "F1": tc.MulticlassF1Score, "JaccardIndex": tc.MulticlassJaccardIndex,
    "HammingDistance": tc.MulticlassHammingDistance, "Accuracy": tc.MulticlassAccuracy,
    "StatScores": tc.MulticlassStatScores, "FBetaScore": tc.MulticlassFBetaScore,
}
LABELS = {
    "Precision": tc.MultilabelPrecision, "Recall": tc.MultilabelRecall, "Specificity": tc.MultilabelSpecificity,
    "F1": tc.MultilabelF1Score, "JaccardIndex": tc.MultilabelJaccardIndex,
    "HammingDistance": tc.MultilabelHammingDistance, "Accuracy": tc.MultilabelAccuracy,
    "StatScores": tc.MultilabelStatScores, "FBetaScore": tc.MultilabelFBetaScore,
}


def binary_batches(kind="random", ignore=None, logits=False):
    batches = []
    for n in sizes():
        y = ids(2, n) if kind == "random" else torch.full((n,), 1 if kind == "ones" else 0)
        x = scores(n)
        if kind == "right":
            y = ids(2, n)
            x = y.float() * 0.5 + 0.25
        if ignore is not None:
            y[1:][torch.rand(n - 1) < 0.3] = ignore
        if logits:
            x = x * 8 - 4
            x[0] = 5.0
        batches.append((x, y))
    return batches


def binary():
    for name, theirs in BINARY.items():
        add(name, {}, theirs(), binary_batches())
        add(name, {"threshold": 0.25, "ignore_index": -1}, theirs(threshold=0.25, ignore_index=-1),
            binary_batches(ignore=-1))
        add(name, {"from_logits": True}, theirs(), binary_batches(logits=True))
        for kind in ("ones", "zeros", "right"):
            add(name, {}, theirs(), binary_batches(kind))
    add("FBetaScore", {"beta": 2.0}, tc.BinaryFBetaScore(beta=2.0), binary_batches())
    add("Precision", {"zero_division": 1}, tc.BinaryPrecision(zero_division=1),
        [(torch.zeros(4), torch.tensor([0, 1, 0, 1]))])


def class_batches(count, predicted="ids", ignore=None, more=(), seen=None):
    batches = []
    for n in sizes():
        y = ids(seen or count, n, *more)
        x = ids(seen or count, n, *more) if predicted == "ids" else distinct(n, count, *more)
        if ignore is not None:
            y[1:][torch.rand(n - 1, *more) < 0.3] = ignore
        batches.append((x, y))
    return batches


def of_classes():
    for name, theirs in CLASSES.items():
        own = {"beta": 0.5} if name == "FBetaScore" else {}
        for average in ("macro", "micro", "weighted", "none"):
            o = {"num_classes": 4, "average": average}
            for more, kind, extra in (((), "ids", {}), ((2,), "scores", {}), ((), "scores", {"ignore_index": -1}),
                                      ((), "ids", {"ignore_index": 1})):
                add(name, {**o, **own, **extra}, theirs(**o, **own, **extra),
                    class_batches(4, kind, extra.get("ignore_index"), more))
            add(name, {**o, **own}, theirs(**o, **own), class_batches(4, "ids", seen=2))
            if name not in ("JaccardIndex",):
                add(name, {**o, **own, "top_k": 2}, theirs(**o, **own, top_k=2), class_batches(4, "scores"))


def label_batches(count, ignore=None, more=(), fixed=None):
    batches = []
    for n in sizes():
        y = ids(2, n, count, *more)
        if fixed is not None:
            y[:, fixed] = 0
        if ignore is not None:
            y[1:][torch.rand(n - 1, count, *more) < 0.3] = ignore
        batches.append((scores(n, count, *more), y))
    return batches


def of_labels():
    for name, theirs in LABELS.items():
        own = {"beta": 2.0} if name == "FBetaScore" else {}
        for average in ("macro", "micro", "weighted", "none"):
            o = {"num_labels": 3, "average": average}
            add(name, {**o, **own}, theirs(**o, **own), label_batches(3))
            add(name, {**o, **own}, theirs(**o, **own), label_batches(3, more=(2,), fixed=1))
            if name != "JaccardIndex":
                add(name, {**o, **own, "ignore_index": -1}, theirs(**o, **own, ignore_index=-1), label_batches(3, -1))


def matrices():
    for normalize in ("none", "true", "pred", "all"):
        o = {"normalize": normalize}
        add("ConfusionMatrix", o, tc.BinaryConfusionMatrix(**o), binary_batches())
        add("ConfusionMatrix", {**o, "num_classes": 4, "ignore_index": -1},
            tc.MulticlassConfusionMatrix(num_classes=4, ignore_index=-1, **o), class_batches(4, "scores", -1))
        add("ConfusionMatrix", {**o, "num_labels": 3}, tc.MultilabelConfusionMatrix(num_labels=3, **o), label_batches(3))
    for weights in ("none", "linear", "quadratic"):
        o = {"weights": weights}
        add("CohenKappa", {"num_classes": 4, **o}, tc.MulticlassCohenKappa(num_classes=4, **o), class_batches(4))
        add("CohenKappa", {"ignore_index": -1, **o}, tc.BinaryCohenKappa(ignore_index=-1, **o),
            [(torch.tensor([0.75, 0.25]), torch.tensor([1, 0])), *binary_batches(ignore=-1)])
    both = (torch.tensor([0.75, 0.25, 0.75]), torch.tensor([1, 0, 0]))
    add("MatthewsCorrCoef", {}, tc.BinaryMatthewsCorrCoef(), [both, *binary_batches()])
    add("MatthewsCorrCoef", {}, tc.BinaryMatthewsCorrCoef(), binary_batches("right"))
    add("MatthewsCorrCoef", {"num_classes": 4}, tc.MulticlassMatthewsCorrCoef(num_classes=4), class_batches(4))
    add("MatthewsCorrCoef", {"num_labels": 3}, tc.MultilabelMatthewsCorrCoef(num_labels=3), label_batches(3))
    add("ExactMatch", {"num_labels": 3}, tc.MultilabelExactMatch(num_labels=3), label_batches(3))
    add("ExactMatch", {"num_classes": 2, "ignore_index": -1}, tc.MulticlassExactMatch(num_classes=2, ignore_index=-1),
        class_batches(2, "ids", -1, (2,)))
    add("ExactMatch", {"num_classes": 3}, tc.MulticlassExactMatch(num_classes=3), class_batches(3, "scores", None, (2,)))


def curves():
    exact = [(torch.tensor([0.25, 0.5, 0.75]), torch.tensor([0, 1, 1]))]
    pairs = {"AUROC": (tc.BinaryAUROC, tc.MulticlassAUROC, tc.MultilabelAUROC),
             "AveragePrecision": (tc.BinaryAveragePrecision, tc.MulticlassAveragePrecision,
                                  tc.MultilabelAveragePrecision)}
    # Scores of 1 are no threshold of torchmetrics' that all others reach: below 1 both agree.
    below = lambda batches: [(x * 0.96875, y) for x, y in batches]
    every = lambda count: [(distinct(count, count), torch.arange(count))]
    for name, (of_two, of_classes, of_labels) in pairs.items():
        add(name, {}, of_two(), exact + binary_batches())
        add(name, {"ignore_index": -1}, of_two(ignore_index=-1), exact + binary_batches(ignore=-1))
        add(name, {"thresholds": 7}, of_two(thresholds=7), below(exact + binary_batches()))
        add(name, {"thresholds": 7}, of_two(thresholds=7), below(exact + binary_batches()))
        for average in ("macro", "weighted", "none"):
            o = {"num_classes": 3, "average": average}
            add(name, o, of_classes(**o), every(3) + class_batches(3, "scores"))
            add(name, {**o, "thresholds": 5}, of_classes(**o, thresholds=5), every(3) + class_batches(3, "scores"))
            o = {"num_labels": 3, "average": average}
            start = [(scores(2, 3), torch.tensor([[0, 1, 0], [1, 0, 1]]))]
            add(name, o, of_labels(**o), start + label_batches(3))
    add("AUROC", {"max_fpr": 0.5}, tc.BinaryAUROC(max_fpr=0.5), exact + binary_batches())
    add("AUROC", {}, None, binary_batches("ones"), value=math.nan)  # torchmetrics: 0
    add("AveragePrecision", {}, None, binary_batches("zeros"), value=math.nan)  # torchmetrics: 0
    for name, of_two, of_classes, of_labels in (
            ("ROC", tc.BinaryROC, tc.MulticlassROC, tc.MultilabelROC),
            ("PrecisionRecallCurve", tc.BinaryPrecisionRecallCurve, tc.MulticlassPrecisionRecallCurve,
             tc.MultilabelPrecisionRecallCurve)):
        add(name, {}, of_two(), exact + binary_batches())
        add(name, {"ignore_index": -1}, of_two(ignore_index=-1), exact + binary_batches(ignore=-1))
        add(name, {}, of_two(), binary_batches("zeros"))
        add(name, {"thresholds": [0.0, 0.25, 0.5, 1.0]}, of_two(thresholds=[0.0, 0.25, 0.5, 1.0]), exact + binary_batches())
        add(name, {"num_classes": 3}, of_classes(num_classes=3), every(3) + class_batches(3, "scores"))
        add(name, {"num_labels": 2}, of_labels(num_labels=2), label_batches(2))


def calibration():
    for norm in ("l1", "l2", "max"):
        o = {"n_bins": 5, "norm": norm}
        add("CalibrationError", o, tc.BinaryCalibrationError(**o), binary_batches())
        add("CalibrationError", {**o, "ignore_index": -1}, tc.BinaryCalibrationError(**o, ignore_index=-1),
            binary_batches(ignore=-1))
        batches = [((x * 8).softmax(1).mul(256).round() / 256, y) for x, y in class_batches(3, "scores")]
        add("CalibrationError", {**o, "num_classes": 3}, tc.MulticlassCalibrationError(num_classes=3, **o), batches)


# Regression.

def numbers(*more, positive=False):
    batches = []
    for n in sizes():
        x, y = torch.randint(-64, 64, (n + 1, *more)) / 16, torch.randint(-64, 64, (n + 1, *more)) / 16
        batches.append((x.abs() + 0.25, y.abs() + 0.25) if positive else (x, y))
    return batches


def regression():
    plain_ones = {
        "MeanSquaredError": tm.MeanSquaredError, "MeanAbsoluteError": tm.MeanAbsoluteError,
        "MeanAbsolutePercentageError": tm.MeanAbsolutePercentageError,
        "SymmetricMeanAbsolutePercentageError": tm.SymmetricMeanAbsolutePercentageError,
        "WeightedMeanAbsolutePercentageError": tm.WeightedMeanAbsolutePercentageError,
        "LogCoshError": tm.LogCoshError, "R2Score": tm.R2Score, "ExplainedVariance": tm.ExplainedVariance,
        "RelativeSquaredError": tm.RelativeSquaredError, "PearsonCorrCoef": tm.PearsonCorrCoef,
        "SpearmanCorrCoef": tm.SpearmanCorrCoef, "ConcordanceCorrCoef": tm.ConcordanceCorrCoef,
        "MeanSquaredLogError": tm.MeanSquaredLogError,
    }
    for name, theirs in plain_ones.items():
        positive = name in ("MeanSquaredLogError", "MeanAbsolutePercentageError")
        add(name, {}, theirs(), numbers(positive=positive))
        add(name, {}, theirs(), numbers(positive=positive))
    for name in ("MeanSquaredError", "MeanAbsoluteError", "LogCoshError", "PearsonCorrCoef", "SpearmanCorrCoef",
                 "ConcordanceCorrCoef", "RelativeSquaredError"):
        add(name, {"num_outputs": 2}, plain_ones[name](num_outputs=2), numbers(2))
    add("MeanSquaredError", {"squared": False}, tm.MeanSquaredError(squared=False), numbers())
    add("RelativeSquaredError", {"squared": False}, tm.RelativeSquaredError(squared=False), numbers())
    add("MinkowskiDistance", {"p": 3}, tm.MinkowskiDistance(p=3), numbers())
    add("R2Score", {"adjusted": 1}, tm.R2Score(adjusted=1), numbers())
    for way in ("uniform_average", "raw_values", "variance_weighted"):
        add("R2Score", {"num_outputs": 2, "multioutput": way}, tm.R2Score(multioutput=way), numbers(2))
        add("ExplainedVariance", {"num_outputs": 2, "multioutput": way}, tm.ExplainedVariance(multioutput=way), numbers(2))
    for reduction in ("sum", "mean"):
        add("CosineSimilarity", {"reduction": reduction}, tm.CosineSimilarity(reduction=reduction), numbers(3))


def aggregation():
    one = lambda: [(torch.randint(-64, 64, (n, 2)) / 16,) for n in sizes()]
    add("Sum", {}, tm.SumMetric(), one())
    add("Max", {}, tm.MaxMetric(), one())
    add("Min", {}, tm.MinMetric(), one())
    add("Mean", {}, tm.MeanMetric(), one())
    add("Mean", {}, tm.MeanMetric(), [(x, x.abs() + 1) for x, in one()])
    flat = [(x.flatten(),) for x, in one()]
    add("Cat", {}, tm.CatMetric(), flat)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--draws", type=int, default=1)
    given = arguments.parse_args()
    torch.manual_seed(given.seed)
    random.seed(given.seed)
    for _ in range(given.draws):
        for draw in (binary, of_classes, of_labels, matrices, curves, calibration, regression, aggregation):
            draw()
    for case in CASES:
        print(json.dumps(case, separators=(",", ":")))


if __name__ == "__main__":
    main()
