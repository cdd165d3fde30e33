"""Writes spec/models/*.pt: what torchvision's, Hugging Face's and other models compute of weights
that are made by a rule (spec/models/recorded.lua has the same); and beams.jsonl, what Hugging
Face's generate finds with gpt2.

    pip install torchvision==0.29.2 transformers==5.23.0      # on PyTorch 2.15.0
    python3 spec/models/torch_models.py
"""

import itertools
import json
import math
import os

import numpy
import torch
import torchvision
import transformers
from torch import nn
from torch_nets import DCGAN, VAE, LanguageModel, UNet
from torchvision.models.convnext import CNBlockConfig

here = os.path.dirname(os.path.abspath(__file__))
COUNT = 2003


def fill(state):
    """Values of each tensor, by its place among the sorted names, its name and its shape."""
    pattern = numpy.arange(COUNT, dtype=numpy.int64) * 7919
    for k, name in enumerate(sorted(state)):
        t = state[name]
        if not t.dtype.is_floating_point:
            continue
        u = ((pattern + k * 104729) % COUNT) / COUNT - 0.5
        u = torch.from_numpy(numpy.resize(u, t.numel())).reshape(t.shape)
        if t.ndim > 1:
            u = u * (3.4 / math.sqrt(t.numel() / t.shape[0]))
        elif name.endswith("weight"):
            u = u * 0.4 + 0.5
        elif name.endswith("running_var"):
            u = u + 1
        else:
            u = u * 0.4
        t.copy_(u)


def record(name, model, inputs, options, run=None, state=None):
    """Weights that share memory have one name in the file."""
    model.eval()
    seen, names = set(), {}
    for key, t in (state or model.state_dict()).items():
        if t.data_ptr() not in seen or t.numel() == 0:
            names[key] = t
        seen.add(t.data_ptr())
    fill(names)
    with torch.no_grad():
        outputs = run(model, *inputs) if run else model(*inputs)
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    for y in outputs:
        assert 0.005 < y.abs().max() < 200, (name, y.abs().max())
    torch.save({
        "options": options, "outputs": [y.clone() for y in outputs],
        "inputs": [list(x.shape) if x.is_floating_point() else x for x in inputs],
        "shapes": {key: list(t.shape) for key, t in names.items()},
    }, os.path.join(here, name + ".pt"))
    print(name, sum(t.numel() for t in names.values()), [tuple(y.shape) for y in outputs])


def record_beams(model, prompt):
    """A line for each search: its options, the sequences without padding, and their scores."""
    with open(os.path.join(here, "beams.jsonl"), "w") as file:
        for beams, penalty, early, stop in itertools.product(
                (2, 4), (1, 2, -1), (True, False, "never"), ([8], [17])):
            options = {"num_beams": beams, "length_penalty": penalty, "early_stopping": early,
                       "max_new_tokens": 10, "num_return_sequences": 2}
            found = model.generate(
                torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt)).long(),
                eos_token_id=stop, pad_token_id=99, do_sample=False, output_scores=True,
                return_dict_in_generate=True, **{**options, "length_penalty": float(penalty)})
            rows = [[i for i in row if i != 99] for row in found.sequences.tolist()]
            file.write(json.dumps({"options": {**options, "stop": stop}, "prompt": prompt,
                                   "ids": rows, "scores": found.sequences_scores.tolist()}) + "\n")


def numbers(*shape):
    """A float input of a shape; the files have the shape alone."""
    x = torch.arange(math.prod(shape), dtype=torch.float64) * 37 % 101 / 50.5 - 1
    return x.reshape(shape).float()


def ids(n, length, vocabulary):
    return (torch.arange(n * length) * 7 % vocabulary).reshape(n, length)


def small_vgg(counts, width, hidden, classes, batch_norm):
    layers = []
    for i, count in enumerate(counts):
        layers += [width * min(2**i, 8)] * count + ["M"]
    model = torchvision.models.VGG(nn.Identity(), classes, init_weights=False)
    model.features = torchvision.models.vgg.make_layers(layers, batch_norm)
    model.classifier = nn.Sequential(
        nn.Linear(8 * width * 49, hidden), nn.ReLU(True), nn.Dropout(), nn.Linear(hidden, hidden),
        nn.ReLU(True), nn.Dropout(), nn.Linear(hidden, classes))
    return model


def vision():
    record("mlp", torchvision.ops.MLP(5, [8, 6, 3], norm_layer=nn.BatchNorm1d, dropout=0.1),
           [numbers(10, 5)],
           {"in_features": 5, "hidden": [8, 6], "num_classes": 3, "norm": True, "dropout": 0.1})
    for name in ["resnet18", "resnet34", "resnet50"]:
        record(name, getattr(torchvision.models, name)(num_classes=7), [numbers(2, 3, 48, 48)],
               {"num_classes": 7})
    for name, counts, size in [("vgg11", [1, 1, 2, 2, 2], 224), ("vgg13_bn", [2] * 5, 96),
                               ("vgg16_bn", [2, 2, 3, 3, 3], 64),
                               ("vgg19", [2, 2, 4, 4, 4], 288)]:
        record(name, small_vgg(counts, 2, 9, 5, name.endswith("bn")), [numbers(1, 3, size, size)],
               {"width": 2, "hidden": 9, "num_classes": 5})
    widths, blocks = [8, 12, 16, 24], [1, 2, 1, 1]
    record("convnext_tiny", torchvision.models.ConvNeXt(
        [CNBlockConfig(w, n, b) for w, n, b in zip(widths, widths[1:] + [None], blocks)],
        0.1, num_classes=5), [numbers(2, 3, 64, 64)],
        {"widths": widths, "blocks": blocks, "num_classes": 5})
    record("vit", torchvision.models.VisionTransformer(16, 4, 2, 2, 12, 20, num_classes=5),
           [numbers(2, 3, 16, 16)], {"image_size": 16, "patch_size": 4, "num_layers": 2, "num_heads": 2,
                             "hidden_dim": 12, "mlp_dim": 20, "num_classes": 5})
    record("vae", VAE(12, 8, 3), [numbers(2, 12)],
           {"in_features": 12, "hidden": 8, "latent": 3})
    record("unet", UNet(2, 3, 4), [numbers(1, 2, 36, 49)],
           {"in_channels": 2, "num_classes": 3, "width": 4})
    record("unet_bilinear", UNet(2, 3, 4, True), [numbers(1, 2, 20, 33)],
           {"in_channels": 2, "num_classes": 3, "width": 4, "bilinear": True})
    record("dcgan", DCGAN(5, 3, 2), [numbers(2, 5)], {"latent": 5, "width": 3, "channels": 2})


def language():
    record("lstm_lm", LanguageModel(19, 6, 8, 2), [ids(2, 9, 19)],
           {"vocab_size": 19, "width": 6, "hidden": 8, "num_layers": 2})
    options = {"vocab_size": 19, "n_positions": 16, "n_embd": 12, "n_layer": 2, "n_head": 2}
    gpt2 = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        **options, attn_implementation="eager"))
    record("gpt2", gpt2, [ids(2, 9, 19)], options, lambda model, x: model(x).logits)
    record_beams(gpt2, [1, 2, 3])
    options = {"vocab_size": 19, "hidden_size": 12, "num_hidden_layers": 2,
               "num_attention_heads": 2, "intermediate_size": 20, "max_position_embeddings": 16}
    types = (torch.arange(18).reshape(2, 9) % 9 > 4).long()
    mask = (torch.arange(9) < torch.tensor([[9], [6]]))

    def run(model, x, types, mask):
        y = model(x, token_type_ids=types, attention_mask=mask.long())
        return y.last_hidden_state * mask[:, :, None], y.pooler_output

    record("bert", transformers.BertModel(transformers.BertConfig(
        **options, attn_implementation="eager")), [ids(2, 9, 19), types, mask], options, run)
    options = {"vocab_size": 19, "hidden_size": 16, "intermediate_size": 24,
               "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
               "max_position_embeddings": 16}
    record("llama", transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **options, attn_implementation="eager")), [ids(2, 9, 19)], options,
        lambda model, x: model(x).logits)


vision()
language()
