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

import numpy as np
import torch
import torchmetrics as tm
import torchmetrics.detection
import torchmetrics.segmentation
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
    case = {"metric": name, "options": options, "batches": plain(batches), "value": plain(value),
            "tolerance": tolerance}
    if theirs is not None and theirs.higher_is_better is not None:
        case["higher_is_better"] = theirs.higher_is_better
    CASES.append(case)


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


# Texts.

WORDS = "the a cat dog sat on mat under in red big ran away".split()


def text(least=1, lines=False):
    words = [random.choice(WORDS) for _ in range(random.randint(least, 9))]
    if lines and len(words) > 2:
        words[random.randint(1, len(words) - 1)] += ".\n"
    return " ".join(words)


def texts(least=1, references=0, lines=False):
    batches = []
    for n in sizes():
        said = [text(least, lines) for _ in range(n)]
        meant = [[text(least, lines) for _ in range(random.randint(1, references))] if references else
                 text(least, lines) for _ in range(n)]
        batches.append((said, meant))
    return batches


def edits(a, b, cost):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        new = [i + 1]
        for j, y in enumerate(b):
            new.append(min(row[j] + (0 if x == y else cost), row[j + 1] + 1, new[j] + 1))
        row = new
    return row[-1]


def of_texts():
    from rouge_score import rouge_scorer

    for name in ("WordErrorRate", "CharErrorRate", "MatchErrorRate", "WordInfoLost", "WordInfoPreserved", "EditDistance"):
        add(name, {}, getattr(tm.text, name)(), texts())
    add("CharErrorRate", {}, tm.text.CharErrorRate(), [(["für élan", ""], ["fur elan", "ab"])])
    add("WordErrorRate", {}, tm.text.WordErrorRate(), [(["", "a b c d e"], ["a b", "f"])])
    # torchmetrics looks near the diagonal only, and misses some: these are by all ways.
    batches = texts()
    value = sum(edits(a, b, 2) for said, meant in batches for a, b in zip(said, meant))
    add("EditDistance", {"substitution_cost": 2, "reduction": "sum"}, None, batches, value=float(value))
    for o in ({}, {"n_gram": 2}, {"n_gram": 2, "smooth": True}, {"n_gram": 2, "weights": [0.75, 0.25]}):
        add("BLEUScore", o, tm.text.BLEUScore(**o), texts(4, 3) + [(["a cat sat on mat"], [["the cat sat on mat"]])])
    add("BLEUScore", {}, tm.text.BLEUScore(), [(["red"], [["big"]])])
    keys = ["rouge1", "rouge2", "rougeL"]
    for accumulate in ("best", "avg"):
        add("ROUGEScore", {"rouge_keys": keys, "accumulate": accumulate},
            tm.text.ROUGEScore(rouge_keys=tuple(keys), accumulate=accumulate), texts(1, 3))
    # torchmetrics needs data of nltk for sentences: what Google's package says of lines.
    scorer, batches, sums, count = rouge_scorer.RougeScorer(["rougeLsum"]), texts(1, lines=True), [0.0] * 3, 0
    for said, meant in batches:
        for a, b in zip(said, meant):
            sums, count = [s + v for s, v in zip(sums, scorer.score(b, a)["rougeLsum"])], count + 1
    names = ["precision", "recall", "fmeasure"]
    add("ROUGEScore", {"rouge_keys": ["rougeLsum"]}, None, batches,
        value={"rougeLsum_" + name: s / count for name, s in zip(names, sums)})
    batches = [(torch.randint(-32, 33, (n, 3, 5)) / 16, ids(5, n, 3)) for n in sizes()]
    add("Perplexity", {}, tm.text.Perplexity(), batches)
    for _, y in batches:
        y[0, 0] = -100
    add("Perplexity", {"ignore_index": -100}, tm.text.Perplexity(ignore_index=-100), batches)


# Images, rankings, boxes.

def images():
    def pair(n, c, size, scale=16):
        x = torch.randint(0, scale + 1, (n, c, size, size + 1)) / scale
        return x, (x + torch.randint(-2, 3, x.shape) / scale).clamp(0, 1)

    batches = [pair(n, 2, 4) for n in (1, 2)]
    add("PeakSignalNoiseRatio", {"data_range": 1.0}, tm.image.PeakSignalNoiseRatio(data_range=1.0), batches)
    add("PeakSignalNoiseRatio", {"data_range": [0.25, 0.75], "base": 2.0},
        tm.image.PeakSignalNoiseRatio(data_range=(0.25, 0.75), base=2.0), batches)
    for o in ({"data_range": 1.0}, {"data_range": 1.0, "gaussian_kernel": False, "kernel_size": 5},
              {"data_range": 1.0, "sigma": 0.75, "reduction": "sum"}):
        add("StructuralSimilarityIndexMeasure", o, tm.image.StructuralSimilarityIndexMeasure(**o),
            [pair(n, 1, 12) for n in (1, 2)], tolerance=2e-3)
    for average in ("macro", "micro", "weighted", "none"):
        for more in ({}, {"include_background": False, "aggregation_level": "global"}):
            o = {"num_classes": 3, "average": average, **more}
            batches = [(ids(3, n, 3, 2), ids(3, n, 3, 2)) for n in sizes()]
            add("DiceScore", o, tm.segmentation.DiceScore(input_format="index", **o), batches)


def rankings():
    def lists(most):
        batches = []
        for n in sizes():
            x = (torch.randperm(4 * n) + 1 + 32 * len(batches)) / 128
            batches.append((x, ids(most, 4 * n), ids(3, 4 * n)))
        return batches

    for name, theirs, most in (("RetrievalMAP", tm.retrieval.RetrievalMAP, 2),
                               ("RetrievalMRR", tm.retrieval.RetrievalMRR, 2),
                               ("RetrievalNormalizedDCG", tm.retrieval.RetrievalNormalizedDCG, 4)):
        for o in ({}, {"top_k": 2}, {"empty_target_action": "skip"}, {"empty_target_action": "pos"},
                  {"ignore_index": -1}):
            batches = lists(most)
            if "empty_target_action" in o:
                batches = [(x, y * q.ne(1), q) for x, y, q in batches]
            if "ignore_index" in o:
                for _, y, _ in batches:
                    y[1:][torch.rand(len(y) - 1) < 0.3] = -1
            add(name, o, theirs(**o), batches)
    ties = [(torch.tensor([0.5, 0.5, 0.25, 0.5]), torch.tensor([3, 0, 2, 1]), torch.zeros(4).long())]
    add("RetrievalNormalizedDCG", {}, tm.retrieval.RetrievalNormalizedDCG(), ties)


def boxes(n, form):
    low, size = torch.randint(0, 60, (n, 2)).float(), torch.randint(4, 120, (n, 2)).float()
    return torch.cat([low, size if form == "xywh" else low + size], 1)


def detection():
    for o, form in (({}, "xyxy"), ({"box_format": "xywh", "class_metrics": True}, "xywh"),
                    ({"iou_thresholds": [0.25, 0.5], "max_detection_thresholds": [1, 2, 100]}, "xyxy")):
        batches, place = [], 0
        for n in (1, 2, 2):
            said, meant = [], []
            for _ in range(n):
                g = random.randint(0, 4)
                of_image = boxes(g, form)
                near = of_image + torch.randint(-3, 4, of_image.shape)
                more = boxes(random.randint(0, 2), form)
                found = torch.cat([near, more])
                order = torch.randperm(128)[:len(found)].float() / 256 + place / 4096
                place += 1
                labels = ids(3, g)
                said.append({"boxes": found, "scores": order, "labels": torch.cat([labels, ids(3, len(more))])})
                meant.append({"boxes": of_image, "labels": labels, "iscrowd": (torch.rand(g) < 0.15).long()})
            batches.append((said, meant))
        # Thresholds of torchmetrics are of f32: these are COCO's.
        theirs = tm.detection.MeanAveragePrecision(**{
            "iou_thresholds": np.linspace(0.5, 0.95, 10).tolist(), "rec_thresholds": np.linspace(0, 1, 101).tolist(),
            **o})
        for batch in batches:
            theirs.update(*batch)
        value = result(theirs.compute())
        most = o.get("max_detection_thresholds", [1, 10, 100])[-1]
        drop = set() if "class_metrics" in o else {"map_per_class", f"mar_{most}_per_class", "classes"}
        add("MeanAveragePrecision", o, None, batches, {k: v for k, v in value.items() if k not in drop}, 1e-5)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--draws", type=int, default=1)
    given = arguments.parse_args()
    torch.manual_seed(given.seed)
    random.seed(given.seed)
    for _ in range(given.draws):
        for draw in (binary, of_classes, of_labels, matrices, curves, calibration, regression, aggregation, of_texts,
                     images, rankings, detection):
            draw()
    for case in CASES:
        print(json.dumps(case, separators=(",", ":")))


if __name__ == "__main__":
    main()
