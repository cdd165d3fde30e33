# spec/ports/torch_text.py: words, sequences, attention. N batch, T positions, V vocabulary.
import math

import torch
from formulas import fill, ids, steps
from torch import nn, optim
from torch.nn import functional as F


def ngram():
    """Word embeddings: an n-gram language model (two words before)."""
    class NGram(nn.Module):
        def __init__(self):
            super().__init__()
            self.embeddings = nn.Embedding(20, 8)
            self.linear1 = nn.Linear(16, 32)
            self.linear2 = nn.Linear(32, 20)

        def forward(self, words):
            x = self.embeddings(words).flatten(1)
            return F.log_softmax(self.linear2(F.relu(self.linear1(x))), dim=1)

    net, text = fill(NGram()), ids(14, n=20)
    context = torch.stack([text[:-2], text[1:-1]], dim=1)
    return steps(optim.SGD(net.parameters(), lr=0.1),
                 lambda _: F.nll_loss(net(context), text[2:]))


def cbow():
    """Continuous bag of words: a word from the sum of those around it."""
    net = fill(nn.ModuleDict({"embeddings": nn.Embedding(20, 8), "linear": nn.Linear(8, 20)}))
    text = ids(16, n=20)
    around = torch.stack([text[:-4], text[1:-3], text[3:-1], text[4:]], dim=1)
    return steps(optim.Adagrad(net.parameters(), lr=0.1), lambda _: F.cross_entropy(
        net["linear"](net["embeddings"](around).sum(1)), text[2:-2]))


def skip_gram():
    """word2vec: pairs of words against words drawn at random."""
    net = fill(nn.ModuleDict({"centre": nn.Embedding(20, 8), "context": nn.Embedding(20, 8)}))
    centre, near, far = ids(24, n=20), ids(24, n=20, place=3), ids(24, 5, n=20, place=7)

    def loss(_):
        v = net["centre"](centre)
        near_score = (v * net["context"](near)).sum(-1)
        far_score = torch.bmm(net["context"](far), v.unsqueeze(2)).squeeze(2)
        return -(F.logsigmoid(near_score).mean() + F.logsigmoid(-far_score).sum(1).mean())

    return steps(optim.Adam(net.parameters(), lr=0.02), loss)


def transformer_lm():
    """A language model by nn.TransformerEncoder: sinusoidal positions, clipping, StepLR."""
    class LM(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0, batch_first=True)
            self.embedding = nn.Embedding(20, 16)
            self.transformer_encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.linear = nn.Linear(16, 20)
            t, rate = torch.arange(10).unsqueeze(1), 10000 ** (torch.arange(0, 16, 2) / 16)
            self.register_buffer("positions", torch.stack(
                [(t / rate).sin(), (t / rate).cos()], dim=2).flatten(1))

        def forward(self, x):
            y = self.embedding(x) * math.sqrt(16) + self.positions[:x.shape[1]]
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
            return self.linear(self.transformer_encoder(y, mask=mask, is_causal=True))

    net, text = fill(LM()), ids(4, 11, n=20)
    optimizer = optim.SGD(net.parameters(), lr=0.2)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 5, gamma=0.95)
    losses = []
    for _ in range(20):
        loss = F.cross_entropy(net(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


def translation():
    """Translation by a transformer: encoder, decoder, padding, label smoothing."""
    class Translator(nn.Module):
        def __init__(self):
            super().__init__()
            options = {"dropout": 0, "batch_first": True, "norm_first": True}
            self.source, self.target = nn.Embedding(15, 16), nn.Embedding(14, 16)
            self.positions = nn.Parameter(torch.zeros(8, 16))
            self.encoder = nn.TransformerEncoder(
                nn.TransformerEncoderLayer(16, 4, 32, **options), 2, enable_nested_tensor=False)
            self.decoder = nn.TransformerDecoder(
                nn.TransformerDecoderLayer(16, 4, 32, **options), 2)
            self.generator = nn.Linear(16, 14)

        def forward(self, source, target):
            padding = source == 0
            memory = self.encoder(self.source(source) + self.positions[:source.shape[1]],
                                  src_key_padding_mask=padding)
            causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
            y = self.decoder(self.target(target) + self.positions[:target.shape[1]], memory,
                             tgt_mask=causal, memory_key_padding_mask=padding)
            return self.generator(y)

    net, source, target = fill(Translator()), ids(4, 7, n=14) + 1, ids(4, 6, n=14)
    source[0, 5:] = 0
    source[2, 3:] = 0
    optimizer = optim.Adam(net.parameters(), lr=5e-3, betas=(0.9, 0.98), eps=1e-9)
    return steps(optimizer, lambda _: F.cross_entropy(
        net(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten(), ignore_index=0,
        label_smoothing=0.1))


class _Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(16, 48)
        self.c_proj = nn.Linear(16, 16)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (y.view(n, t, 2, 8).transpose(1, 2) for y in self.c_attn(x).split(16, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(n, t, c))


class _Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(16)
        self.attn = _Attention()
        self.ln_2 = nn.LayerNorm(16)
        self.mlp = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


def nanogpt():
    """nanoGPT: tied weights, decay for matrices alone, warm-up and cosine."""
    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(20, 16), nn.Embedding(10, 16)
            self.h = nn.ModuleList(_Block() for _ in range(2))
            self.ln_f = nn.LayerNorm(16)
            self.lm_head = nn.Linear(16, 20, bias=False)
            self.lm_head.weight = self.wte.weight

        def forward(self, x):
            y = self.wte(x) + self.wpe(torch.arange(x.shape[1]))
            for block in self.h:
                y = block(y)
            return self.lm_head(self.ln_f(y))

    net, text = fill(GPT()), ids(4, 11, n=20)
    groups = [{"params": [p for p in net.parameters() if p.ndim > 1], "weight_decay": 0.1},
              {"params": [p for p in net.parameters() if p.ndim == 1], "weight_decay": 0.0}]
    optimizer = optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95))

    def rate(step):
        if step < 5:
            return (step + 1) / 5
        return 0.1 + 0.45 * (1 + math.cos(math.pi * (step - 5) / 15))

    scheduler = optim.lr_scheduler.LambdaLR(optimizer, rate)
    losses = []
    for _ in range(20):
        loss = F.cross_entropy(net(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


def llama():
    """Llama's block: RMSNorm, rotary positions, grouped heads, SwiGLU."""
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q_proj = nn.Linear(16, 16, bias=False)
            self.k_proj = nn.Linear(16, 8, bias=False)
            self.v_proj = nn.Linear(16, 8, bias=False)
            self.o_proj = nn.Linear(16, 16, bias=False)

        def rotate(self, x):
            angle = torch.outer(torch.arange(x.shape[2]), 10000 ** -(torch.arange(0, 4, 2) / 4))
            angle = torch.cat([angle, angle], dim=1)
            a, b = x.chunk(2, dim=-1)
            return x * angle.cos() + torch.cat([-b, a], dim=-1) * angle.sin()

        def forward(self, x):
            n, t, _ = x.shape
            q = self.rotate(self.q_proj(x).view(n, t, 4, 4).transpose(1, 2))
            k = self.rotate(self.k_proj(x).view(n, t, 2, 4).transpose(1, 2))
            v = self.v_proj(x).view(n, t, 2, 4).transpose(1, 2)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            return self.o_proj(y.transpose(1, 2).reshape(n, t, 16))

    class MLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate_proj = nn.Linear(16, 32, bias=False)
            self.up_proj = nn.Linear(16, 32, bias=False)
            self.down_proj = nn.Linear(32, 16, bias=False)

        def forward(self, x):
            return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed_tokens = nn.Embedding(20, 16)
            self.input_layernorm, self.self_attn = nn.RMSNorm(16, eps=1e-5), Attention()
            self.post_attention_layernorm, self.mlp = nn.RMSNorm(16, eps=1e-5), MLP()
            self.norm = nn.RMSNorm(16, eps=1e-5)
            self.lm_head = nn.Linear(16, 20, bias=False)

        def forward(self, x):
            y = self.embed_tokens(x)
            y = y + self.self_attn(self.input_layernorm(y))
            y = y + self.mlp(self.post_attention_layernorm(y))
            return self.lm_head(self.norm(y))

    net, text = fill(Llama()), ids(4, 11, n=20)
    return steps(optim.AdamW(net.parameters(), lr=5e-3), lambda _: F.cross_entropy(
        net(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten()))


def bert():
    """BERT's masked language model: three embeddings, a head whose weights are the words'."""
    class BERT(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.positions = nn.Embedding(20, 16), nn.Embedding(8, 16)
            self.segments, self.norm = nn.Embedding(2, 16), nn.LayerNorm(16, eps=1e-12)
            layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0, activation="gelu",
                                               batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.transform = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.LayerNorm(16))
            self.bias = nn.Parameter(torch.zeros(20))

        def forward(self, ids, segments):
            x = self.words(ids) + self.positions.weight + self.segments(segments)
            y = self.transform(self.encoder(self.norm(x)))
            return F.linear(y, self.words.weight, self.bias)

    net, text = fill(BERT()), ids(4, 8, n=19) + 1
    masked = ids(4, 8, n=4, place=2) == 0
    inputs, labels = text.masked_fill(masked, 0), text.masked_fill(~masked, -100)
    segments = (torch.arange(8) >= 5).long().expand(4, 8)
    return steps(optim.AdamW(net.parameters(), lr=5e-3), lambda _: F.cross_entropy(
        net(inputs, segments).transpose(1, 2), labels))


def text_cnn():
    """Convolutions over words (Kim 2014), each as wide as an embedding."""
    class TextCNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(30, 12, padding_idx=0)
            self.convs = nn.ModuleList(nn.Conv2d(1, 6, (k, 12)) for k in (2, 3, 4))
            self.fc = nn.Linear(18, 3)

        def forward(self, x):
            x = self.embedding(x).unsqueeze(1)
            pooled = [F.relu(conv(x)).squeeze(3).amax(2) for conv in self.convs]
            return self.fc(torch.cat(pooled, dim=1))

    net, words, labels = fill(TextCNN()), ids(6, 10, n=30), ids(6, n=3)
    return steps(optim.Adadelta(net.parameters(), lr=1.0),
                 lambda _: F.cross_entropy(net(words), labels))


def topics():
    """Topics of texts of any length, by the mean of their words' vectors."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.bag, self.head = nn.EmbeddingBag(40, 8), nn.Linear(8, 4)

        def forward(self, words, begins):
            return self.head(self.bag(words, begins))

    net, words = fill(Net()), ids(30, n=40)
    begins, y = torch.tensor([0, 4, 11, 12, 20]), ids(5, n=4)
    return steps(optim.SGD(net.parameters(), lr=0.5),
                 lambda _: F.cross_entropy(net(words, begins), y))
