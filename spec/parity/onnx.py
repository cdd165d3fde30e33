"""spec/parity/onnx.py: ltrain's ONNX files in onnxruntime.

  python onnx.py FOLDER

Runs each file of the folder (see onnx.lua) on the inputs beside it, prints the largest difference
from ltrain's outputs and ends with status 1 where one is above 1e-5 of the value (of 1 below it)."""
import glob
import os
import sys

import numpy
import onnxruntime
from safetensors.numpy import load_file


def difference(got, want):
    if got.shape != want.shape or got.dtype != want.dtype:
        return float("inf")
    if want.size == 0:
        return 0.0
    got, want = got.astype("float64"), want.astype("float64")
    same = (got == want) | (numpy.isnan(got) & numpy.isnan(want))
    off = numpy.where(same, 0, numpy.abs(got - want) / numpy.maximum(numpy.abs(want), 1))
    return float(numpy.nan_to_num(off, nan=numpy.inf).max())


def numbered(state, word):
    names = sorted((n for n in state if n.startswith(word)), key=lambda n: int(n.split("_")[1]))
    return [state[n] for n in names]


def main(folder):
    bad = runs = 0
    for path in sorted(glob.glob(os.path.join(folder, "*.onnx"))):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(path, options)
        names = [i.name for i in session.get_inputs()]
        beside = [path[:-5] + suffix + ".safetensors" for suffix in ("", "_2", "_3", "_4")]
        for beside in filter(os.path.exists, beside):
            state = load_file(beside)
            want = numbered(state, "output_")
            try:
                got = session.run(None, dict(zip(names, numbered(state, "input_"))))
            except Exception as error:
                print(f"{os.path.basename(beside)}: {error}")
                got = []
            worst = max(map(difference, got, want)) if len(got) == len(want) else float("inf")
            runs += 1
            if worst > 1e-5:
                bad += 1
                print(f"{os.path.basename(beside)}: {worst:g}")
    print(f"onnx: {runs} runs in onnxruntime, {bad} differ by more than 1e-5")
    return 1 if bad or runs == 0 else 0


sys.exit(main(sys.argv[1]))
