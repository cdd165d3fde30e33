"""spec/text/tokenizers_of_hf.py: tokenizers like GPT-2's, Llama 3's and BERT's, made by Hugging
Face's library, and texts of all scripts to try them on."""
import random
import unicodedata

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

# First and last code points of blocks; weights.
BLOCKS = [
    (0x20, 0x7e, 60), (0xa0, 0x24f, 10), (0x250, 0x2af, 1), (0x300, 0x36f, 2), (0x370, 0x3ff, 4),
    (0x400, 0x52f, 6), (0x531, 0x58a, 1), (0x5d0, 0x5ea, 2), (0x600, 0x6ff, 4), (0x900, 0x97f, 3),
    (0xe00, 0xe5b, 2), (0x10a0, 0x10ff, 1), (0x1100, 0x11ff, 1), (0x1e00, 0x1fff, 3),
    (0x2000, 0x206f, 3), (0x2070, 0x20a0, 1), (0x2100, 0x23ff, 2), (0x2460, 0x27ff, 1),
    (0x3000, 0x30ff, 6), (0x3130, 0x318f, 1), (0x4e00, 0x9fff, 8), (0xac00, 0xd7a3, 5),
    (0xf900, 0xfaff, 1), (0xfb00, 0xfb4f, 1), (0xfe20, 0xff60, 2), (0x10400, 0x1044f, 1),
    (0x1d400, 0x1d7ff, 1), (0x1f300, 0x1f64f, 4), (0x20000, 0x20100, 1)]

ENGLISH = ("the of and to in a is that it's was for on are with as I'm he'll be at one've have this "
           "from or had by not word but what some we're can out other were all there when up use "
           "your how said an each she'd don't which do their time if will way about many then them "
           "would write like so these her long make thing see him two has look more day could go "
           "come did my sound no most number who over know water than call first people may down "
           "been now find any new work part take get place made live where after back little only "
           "round man year came show every good me give our under name very through just form "
           "sentence great think say help low line differ turn cause much mean before move right "
           "boy old too same tell does set three want air well also play small end put home read "
           "HAND Port LARGE Spell add even land here must big high such follow act why ask men "
           "change went light kind off need house picture try us again animal point").split()


def is_settled(code):
    """Whether all versions of Unicode that the libraries know agree on a character."""
    char = chr(code)
    return (unicodedata.category(char) == unicodedata.ucd_3_2_0.category(char) != "Cn"
            or 0x1f300 <= code < 0x1f320 or 0x1f400 <= code < 0x1f43f)


SETTLED = [code for code in range(0x30000) if not 0xd800 <= code < 0xe000 and is_settled(code)]


def block(lo, hi):
    return [code for code in SETTLED if lo <= code <= hi]


def texts(size, seed):
    """Lines of words, numbers, punctuation and characters of all blocks, `size` bytes in all."""
    rng = random.Random(seed)
    weights, blocks = [w for _, _, w in BLOCKS], [block(lo, hi) for lo, hi, _ in BLOCKS]
    parts, length = [], 0
    while length < size:
        kind = rng.random()
        if kind < 0.55:
            part = rng.choice(ENGLISH)
            if rng.random() < 0.05:
                part = part.upper() if rng.random() < 0.5 else part.capitalize()
        elif kind < 0.62:
            part = str(rng.randrange(10 ** rng.randrange(1, 9)))
        elif kind < 0.66:
            part = rng.choice([".", ",", "...", "!?", "--", " - ", "(", ")", "\"", "==", "#",
                               "'s", "'LL", "’s", "<|x|>", "[MASK]", "[sep]"])
        elif kind < 0.95:
            chars = rng.choices(blocks, weights)[0]
            part = "".join(chr(rng.choice(chars)) for _ in range(rng.randrange(1, 9)))
        else:
            part = "".join(chr(rng.choice(SETTLED)) for _ in range(3))
        space = rng.choices([" ", "", "  ", "\n", "\n\n", "\r\n", "\t", "   ", " \n ", "\u00a0",
                             "\u3000"], [80, 8, 3, 6, 2, 1, 1, 1, 1, 1, 1])[0]
        parts.append(part + space)
        length += len((part + space).encode())
    return "".join(parts)


def gpt2(lines, size=1000):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return t


def llama3(lines, size=1000):
    t = Tokenizer(models.BPE(ignore_merges=True))
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=size, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|x|>"])
    begin = t.token_to_id("<|begin_of_text|>")
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin_of_text|> $A",
                                      pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1",
                                      special_tokens=[("<|begin_of_text|>", begin)])])
    return t


def bert(lines, lowercase, size=1500):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece(prefix="##")
    t.train_from_iterator(lines, trainers.WordPieceTrainer(
        vocab_size=size, show_progress=False, limit_alphabet=min(800, size // 2),
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    cls, sep = t.token_to_id("[CLS]"), t.token_to_id("[SEP]")
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", cls), ("[SEP]", sep)])
    return t


def odd(lines, size=600):
    """What the three others do not have: NFC, a space before texts, tokens of several kinds."""
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=True)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<s>", "</s>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.add_tokens([AddedToken("the", single_word=True), AddedToken("<mask>", lstrip=True),
                  AddedToken("[SEP]", rstrip=True, normalized=True)])
    t.post_processor = processors.RobertaProcessing(("</s>", t.token_to_id("</s>")),
                                                    ("<s>", t.token_to_id("<s>")))
    return t


def characters(lines, size=400):
    """BPE of characters: unknown ones, words by Unicode."""
    t = Tokenizer(models.BPE(unk_token="[UNK]", fuse_unk=True))
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=size, limit_alphabet=200, special_tokens=["[UNK]"], show_progress=False))
    return t


def make(size=30000, lines=None):
    lines = lines or texts(400000, 1).split("\n")
    return {"gpt2": gpt2(lines, size), "llama3": llama3(lines, size),
            "bert_uncased": bert(lines, True, size), "bert_cased": bert(lines, False, size),
            "odd": odd(lines, size // 2), "characters": characters(lines)}
