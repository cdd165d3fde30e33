# spec/bench/gpu_side.py: PyTorch's side of ./dev bench gpu; gpu_side.lua has the same cases.
import math, os, sys, time
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch
import torch.nn.functional as F
from torch_models import batch, make_net, make_optimizer

torch.set_default_device("cuda")
torch.manual_seed(1)


def seconds(fn):
    def window(n):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(n):
            fn()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / n

    window(5)
    n = max(3, math.ceil(0.03 / window(5)))
    return min(window(n) for _ in range(7))


def report(name, value, unit):
    print("%s %.6g %s" % (name, value, unit))


def bandwidth(name, size, fn):
    report(name, size / seconds(fn) / 1e9, "GB/s")


def flops(name, n, fn):
    report(name, n / seconds(fn) / 1e12, "TFLOP/s")


N = 1 << 26
with torch.no_grad():
    x, y = torch.randn(N), torch.randn(N)
    bandwidth("copy_f32", 8 * N, lambda: x.clone())
    bandwidth("add_f32", 12 * N, lambda: x + y)
    bandwidth("gelu_f32", 8 * N, lambda: F.gelu(x))
    bandwidth("exp_f32", 8 * N, lambda: x.exp())
    bandwidth("tanh_f32", 8 * N, lambda: x.tanh())
    bandwidth("cast_bf16", 6 * N, lambda: x.to(torch.bfloat16))
    h, g = x.to(torch.bfloat16), y.to(torch.bfloat16)
    bandwidth("add_bf16", 6 * N, lambda: h + g)
    bandwidth("gelu_bf16", 4 * N, lambda: F.gelu(h))
    m, row = x.view(8192, 8192), torch.randn(8192)
    bandwidth("add_row_f32", 8 * N, lambda: m + row)
    bandwidth("transpose_f32", 8 * N, lambda: m.t().contiguous())
    bandwidth("sum_f32", 4 * N, lambda: x.sum())
    bandwidth("sum_rows_f32", 4 * N, lambda: m.sum(1))
    bandwidth("sum_columns_f32", 4 * N, lambda: m.sum(0))
    wide, narrow = x.view(65536, 1024), x.view(8192, 8192)
    bandwidth("softmax_1024_f32", 8 * N, lambda: wide.softmax(1))
    bandwidth("softmax_8192_f32", 8 * N, lambda: narrow.softmax(1))
    weight, bias = torch.ones(1024), torch.zeros(1024)
    bandwidth("layer_norm_f32", 8 * N, lambda: F.layer_norm(wide, (1024,), weight, bias))
    ids = torch.randint(0, 1024, (65536,))
    bandwidth("cross_entropy_f32", 4 * N, lambda: F.cross_entropy(wide, ids))
    bandwidth("dropout_f32", 8 * N, lambda: F.dropout(x, 0.1))
    bandwidth("rand_f32", 4 * N, lambda: torch.rand(N))
    table, take = torch.randn(50257, 768), torch.randint(0, 50257, (16384,))
    bandwidth("embedding_f32", 8 * 16384 * 768, lambda: F.embedding(take, table))
    bandwidth("cat_f32", 16 * N, lambda: torch.cat((x, y)))
    keys = torch.randn(1 << 22)
    bandwidth("sort_f32", 16 * (1 << 22), lambda: keys.sort())
    for n in (1024, 4096):
        a, b = torch.randn(n, n), torch.randn(n, n)
        flops("matmul_f32_%d" % n, 2 * n**3, lambda: a @ b)
        p, q = a.to(torch.bfloat16), b.to(torch.bfloat16)
        flops("matmul_bf16_%d" % n, 2 * n**3, lambda: p @ q)
    image, kernel = torch.randn(64, 64, 56, 56), torch.randn(64, 64, 3, 3)
    torch.backends.cudnn.allow_tf32 = False
    flops("conv_3x3_f32", 2 * 64 * 64 * 64 * 9 * 56 * 56, lambda: F.conv2d(image, kernel, padding=1))
    q = torch.randn(16, 12, 1024, 64)
    flops("attention_causal_f32", 2 * 2 * 16 * 12 * 1024 * 1024 * 64 / 2,
          lambda: F.scaled_dot_product_attention(q, q, q, is_causal=True))
    h = q.bfloat16()
    flops("attention_causal_bf16", 2 * 2 * 16 * 12 * 1024 * 1024 * 64 / 2,
          lambda: F.scaled_dot_product_attention(h, h, h, is_causal=True))
    small = torch.randn(8)
    report("add_of_8", seconds(lambda: small + small) * 1e6, "us")

t = [torch.randn(16, 12, 1024, 64).bfloat16().requires_grad_() for _ in range(3)]
g = torch.randn(16, 12, 1024, 64).bfloat16()


def attend():  # 2 products forward, 5 backward
    for x in t:
        x.grad = None
    F.scaled_dot_product_attention(*t, is_causal=True).backward(g)


flops("attention_causal_bf16_both", 7 * 2 * 16 * 12 * 1024 * 1024 * 64 / 2, attend)

for name in ("mlp", "cnn", "gpt"):
    net = make_net(name)
    data = batch(name)
    optimizer = make_optimizer(name, net)

    def step():
        loss = F.cross_entropy(net(data[0]), data[1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    report("step_" + name, seconds(step) * 1e6, "us")
