# spec/bench/xla_steps.py: JAX's side of ./dev bench xla.
#
#   python xla_steps.py MODEL STEPS FOLDER
#
# Trains the model of xla_steps.lua from its weights on its batches (FOLDER/<model>.safetensors),
# the whole step under one jit, and prints the largest relative difference of the losses and the
# times of the first step (tracing and compilation) and of the fastest one.
import json, struct, sys, time
import numpy as np
import jax
import jax.numpy as jnp

TYPES = {"F32": np.float32, "I64": np.int64}
BETA1, BETA2, EPS = 0.9, 0.999, 1e-8


def load(path):
    with open(path, "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        header, data = json.loads(f.read(size)), f.read()
    metadata, tensors = header.pop("__metadata__", {}), {}
    for name, t in header.items():
        a, b = t["data_offsets"]
        tensors[name] = np.frombuffer(data[a:b], TYPES[t["dtype"]]).reshape(t["shape"])
    return tensors, metadata


def linear(p, name, x):
    return x @ p[name + ".weight"].T + p[name + ".bias"]


def layer_norm(p, name, x):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * p[name + ".weight"] + p[name + ".bias"]


def mlp(p, x):
    return linear(p, "c", jax.nn.relu(linear(p, "b", jax.nn.relu(linear(p, "a", x)))))


def convolution(p, name, x):
    y = jax.lax.conv_general_dilated(x, p[name + ".weight"], (1, 1), "VALID",
                                     dimension_numbers=("NCHW", "OIHW", "NCHW"))
    return y + p[name + ".bias"][:, None, None]


def batch_norm(p, name, x):
    mean = x.mean((0, 2, 3), keepdims=True)
    variance = ((x - mean) ** 2).mean((0, 2, 3), keepdims=True)
    y = (x - mean) / jnp.sqrt(variance + 1e-5)
    return y * p[name + ".weight"][:, None, None] + p[name + ".bias"][:, None, None]


def cnn(p, x):
    x = jax.nn.relu(batch_norm(p, "norm", convolution(p, "conv1", x)))
    x = jax.nn.relu(convolution(p, "conv2", x))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return linear(p, "b", jax.nn.relu(linear(p, "a", x.reshape(x.shape[0], -1))))


def attention(q, k, v):
    t = q.shape[2]
    scores = jnp.einsum("bhtd,bhsd->bhts", q, k) / np.sqrt(q.shape[3]).astype(np.float32)
    scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -jnp.inf)
    return jnp.einsum("bhts,bhsd->bhtd", jax.nn.softmax(scores, -1), v)


def block(p, name, x, heads):
    b, t, width = x.shape
    qkv = linear(p, name + ".qkv", layer_norm(p, name + ".norm1", x))
    qkv = qkv.reshape(b, t, 3, heads, width // heads).transpose(2, 0, 3, 1, 4)
    y = attention(qkv[0], qkv[1], qkv[2]).transpose(0, 2, 1, 3).reshape(b, t, width)
    x = x + linear(p, name + ".out", y)
    up = linear(p, name + ".up", layer_norm(p, name + ".norm2", x))
    return x + linear(p, name + ".down", jax.nn.gelu(up, approximate=False))


def gpt(p, ids):
    x = p["token.weight"][ids] + p["position.weight"][jnp.arange(ids.shape[1])]
    for k in range(4):
        x = block(p, "blocks.%d" % (k + FIRST), x, 4)
    return linear(p, "head", layer_norm(p, "norm", x)).reshape(-1, 65)


def cross_entropy(logits, target):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), target[:, None], 1).mean()


def adam(decay):
    def update(p, grads, state, step):
        first, second = 1 - BETA1 ** step, 1 - BETA2 ** step
        m = {k: BETA1 * state[0][k] + (1 - BETA1) * g for k, g in grads.items()}
        v = {k: BETA2 * state[1][k] + (1 - BETA2) * g * g for k, g in grads.items()}
        p = {k: x * (1 - 1e-3 * decay)
             - 1e-3 * (m[k] / first) / (jnp.sqrt(v[k] / second) + EPS) for k, x in p.items()}
        return p, (m, v)
    return update


def sgd(p, grads, state, step):
    m = {k: 0.9 * state[0][k] + g for k, g in grads.items()}
    return {k: x - 0.01 * m[k] for k, x in p.items()}, (m, state[1])


def make_step(model):
    net = {"mlp": mlp, "mlp_512": mlp, "cnn": cnn}.get(model, gpt)
    update = sgd if net is cnn else adam(0.0 if net is mlp else 0.1)

    def step(p, state, number, x, y):
        loss, grads = jax.value_and_grad(lambda p: cross_entropy(net(p, x), y))(p)
        return (*update(p, grads, state, number), loss)
    return jax.jit(step, donate_argnums=(0, 1))


model, steps, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
tensors, metadata = load("%s/%s.safetensors" % (folder, model))
p = {k[2:]: jnp.asarray(v) for k, v in tensors.items()
     if k.startswith("w.") and v.dtype == np.float32}
FIRST = 1 if "blocks.1.qkv.weight" in p and "blocks.0.qkv.weight" not in p else 0
wanted = [float(x) for x in metadata["losses"].split()]
state = (jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p))
step, times, worst = make_step(model), [], 0
for i in range(steps):
    k = i % len(wanted)
    x, y = tensors["x.%d" % k], tensors["y.%d" % k]
    start = time.perf_counter()
    p, state, loss = step(p, state, np.float32(i + 1), x, y)
    loss = float(loss)
    times.append(time.perf_counter() - start)
    if i < len(wanted):
        worst = max(worst, abs(loss - wanted[i]) / abs(wanted[i]))
print("first %.3f step %.6f worst %.2g" % (times[0], min(times[1:]), worst))
