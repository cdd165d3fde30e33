# spec/bench/tokenizers_speed.py: the table of tokenizers.sh.
import glob
import os
import subprocess
import sys
import tempfile
import time

import tokenizers_of_hf as hf

TIMES = """
local folder, name, text, rounds = ...
local t = assert(lt.text.tokenizer(folder .. "/" .. name .. ".json"))
local file = assert(io.open(folder .. "/" .. text, "rb"))
local s, least = file:read "a", math.huge
for _ = 1, rounds do
  local start = os.clock()
  t:encode(s)
  least = math.min(least, os.clock() - start)
end
print(#s / 1e6 / least)
"""


def pages(docs, file, size):
    """`size` bytes of a file, or of the pages of the documentation, repeated."""
    paths = [file] if file else sorted(glob.glob(f"{docs}/**/*.md", recursive=True))
    text = ""
    for path in paths:
        with open(path, encoding="utf-8") as f:
            text += f.read()
    return (text * (size // len(text) + 1))[:size]


def main():
    size, rounds = int(float(sys.argv[1]) * 1e6), int(sys.argv[2])
    texts = {"pages": pages(sys.argv[3], sys.argv[4], size), "mixed": hf.texts(size, 7)}
    print("| tokenizer | text | tokenizers, MB/s | ltrain, MB/s |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/times.lua", "w", encoding="utf-8") as f:
            f.write('local lt = require "ltrain"\n' + TIMES)
        for name, text in texts.items():
            with open(f"{folder}/{name}", "w", encoding="utf-8", newline="") as f:
                f.write(text)
        lines = (texts["pages"][:400000] + hf.texts(400000, 1)).split("\n")
        for name, tokenizer in hf.make(30000, lines).items():
            tokenizer.save(f"{folder}/{name}.json")
            for kind, text in texts.items():
                start = time.process_time()
                tokenizer.encode(text)
                theirs = len(text.encode()) / 1e6 / (time.process_time() - start)
                ours = subprocess.run([os.environ["LTRAIN"], f"{folder}/times.lua", folder, name,
                                       kind, str(rounds)], check=True, capture_output=True, text=True)
                print(f"| {name} | {kind} | {theirs:.1f} | {float(ours.stdout):.1f} |", flush=True)


main()
