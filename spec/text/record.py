"""spec/text/record.py: small tokenizers and what Hugging Face's library makes of some texts with
them, for spec/text/tokenizer_spec.lua.

    python spec/text/record.py          (writes spec/text/recorded/)
"""
import json
import os

import tokenizers_of_hf as hf

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorded")
TEXTS = [
    "", " ", "\n", "Hello, world!", "  two  spaces \t\n\n tab\r\nend  ", "don't WE'LL they’re I'M 'S",
    "1 12 123 1234 12345 3.14159 1,000,000", "naïve café ÀÉÎ ﬁ İstanbul ǅ ß ſ", "日本語のテキスト、漢字と仮名。한국어",
    "Ελληνικά ΣΊΣΥΦΟΣ русский עברית العربية हिन्दी ไทย", "emoji 🐀🐁 x\u200dy\u00adz", "a\u0301b\u0300 Å",
    "...!!! -- ((x)) == #$% `~^|<>", "<|endoftext|>a<|x|> [MASK] [SEP] the cat, other <mask> </s>",
    "\x00\x01\x1f\x7f\x85\xa0\u2028\u3000.", "x" * 120, "supercalifragilistic" * 6, "aaaaaaaaaaaaaaaaa"]


def record_training():
    lines = [line for line in TEXTS + hf.texts(8000, 5).split("\n") if line]
    made = {name: json.loads(make(lines, 420).to_str())["model"]
            for name, make in (("gpt2", hf.gpt2), ("llama3", hf.llama3))}
    with open(f"{FOLDER}/training.json", "w") as f:
        json.dump({"lines": lines, "merges": {k: m["merges"] for k, m in made.items()},
                   "vocab": {k: m["vocab"] for k, m in made.items()}}, f, ensure_ascii=False)


def main():
    os.makedirs(FOLDER, exist_ok=True)
    record_training()
    lines = hf.texts(60000, 3).split("\n")
    texts = TEXTS + [hf.texts(700, 11), hf.texts(700, 12)]
    for name, tokenizer in hf.make(420, lines).items():
        path = f"{FOLDER}/{name}.json"
        tokenizer.save(path, pretty=False)
        cases = [{"text": text, "ids": tokenizer.encode(text).ids,
                  "plain": tokenizer.encode(text, add_special_tokens=False).ids} for text in texts]
        for case in cases:
            case["decoded"] = tokenizer.decode(case["ids"])
            case["whole"] = tokenizer.decode(case["ids"], skip_special_tokens=False)
        with open(f"{FOLDER}/{name}_cases.json", "w") as f:
            json.dump(cases, f, ensure_ascii=False)


main()
