"""spec/text/check.py: ids of megabytes of text, and merges found in it, against Hugging Face's
tokenizers.

    python spec/text/check.py [MEGABYTES]      (LTRAIN: the binary, build/ltrain by default)
"""
import json
import os
import subprocess
import sys
import tempfile

import tokenizers_of_hf as hf

LTRAIN = os.environ.get("LTRAIN", "build/ltrain")
ENCODE = """
local folder, name = ...
local t = assert(lt.text.tokenizer(folder .. "/" .. name .. ".json"))
local file = assert(io.open(folder .. "/text.txt", "rb"))
local ids = t:encode(file:read "a")
local out = assert(io.open(folder .. "/" .. name .. ".ids", "wb"))
out:write(ids:tobytes())
"""
TRAIN = """
local folder = ...
local file = assert(io.open(folder .. "/text.txt", "rb"))
local t = lt.text.BPETokenizer.train(file:read "a", { vocab_size = 30000, min_frequency = 1 })
assert(t:save(folder .. "/trained.json"))
"""


def first_difference(tokenizer, text, want, got):
    """Where the tokens of the two begin to differ, as text."""
    at = next((k for k, (a, b) in enumerate(zip(want.ids, got)) if a != b), min(len(want), len(got)))
    begin, end = want.offsets[max(at - 3, 0)][0], want.offsets[min(at + 5, len(want) - 1)][1]
    near = [tokenizer.id_to_token(k) for k in got[max(at - 3, 0):at + 6]]
    return f"token {at} near {text[begin:end]!r}: {want.tokens[max(at - 3, 0):at + 6]} and {near}"


def run(folder, script, *arguments):
    with open(f"{folder}/script.lua", "w") as f:
        f.write('local lt = require "ltrain"\n' + script)
    subprocess.run([LTRAIN, f"{folder}/script.lua", folder, *arguments], check=True)


def same_training(folder, text):
    run(folder, TRAIN)
    with open(f"{folder}/trained.json") as f:
        got = json.load(f)["model"]
    want = json.loads(hf.gpt2([text], 30000).to_str())["model"]
    same = got["vocab"] == want["vocab"] and got["merges"] == want["merges"]
    print(f"training: {len(got['merges'])} merges, {'equal' if same else 'DIFFERENT'}")
    return same


def main():
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    text = hf.texts(int(megabytes * 1e6), 7)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/text.txt", "wb") as f:
            f.write(text.encode())
        for name, tokenizer in hf.make().items():
            tokenizer.save(f"{folder}/{name}.json")
            run(folder, ENCODE, name)
            with open(f"{folder}/{name}.ids", "rb") as f:
                got = memoryview(f.read()).cast("q").tolist()
            want = tokenizer.encode(text)
            same = want.ids == got
            print(f"{name}: {len(got)} ids, {'equal' if same else 'DIFFERENT'}")
            if not same:
                failed += 1
                print("  " + first_difference(tokenizer, text, want, got))
        failed += not same_training(folder, text)
    sys.exit(failed > 0)


main()
