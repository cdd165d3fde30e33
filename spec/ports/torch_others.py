# spec/ports/torch_others.py: reinforcement learning, recommendations, graphs.
import torch
from formulas import fill, ids, steps, wave
from torch import nn, optim
from torch.distributions import Categorical
from torch.nn import functional as F


def dqn():
    """Deep Q-learning: a target network that follows, smooth L1, AMSGrad, clipped values."""
    def network():
        return nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(),
                             nn.Linear(32, 2))

    policy, target = fill(network()), network()
    target.load_state_dict(policy.state_dict())
    state, after = wave(16, 4), wave(16, 4, place=1)
    action, reward = ids(16, 1, n=2), wave(16, place=2) + 1
    final = ids(16, n=5) == 0
    optimizer = optim.AdamW(policy.parameters(), lr=5e-3, amsgrad=True)
    losses = []
    for _ in range(20):
        value = policy(state).gather(1, action).squeeze(1)
        with torch.no_grad():
            best = target(after).amax(1).masked_fill(final, 0)
        loss = F.smooth_l1_loss(value, reward + 0.99 * best)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(policy.parameters(), 100)
        optimizer.step()
        with torch.no_grad():
            for p, t in zip(policy.parameters(), target.parameters()):
                t.lerp_(p, 0.05)
        losses.append(loss.item())
    return losses


def _returns(rewards):
    """Discounted sums of what follows, normalized."""
    total, found = 0.0, []
    for reward in reversed(rewards.tolist()):
        total = reward + 0.9 * total
        found.insert(0, total)
    found = torch.tensor(found)
    return (found - found.mean()) / (found.std() + 1e-6)


def reinforce():
    """pytorch/examples: policy gradients."""
    policy, states = fill(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))), wave(12, 4)
    actions, returns = ids(12, n=3), _returns(wave(12, place=1))

    def loss(_):
        of_policy = Categorical(logits=policy(states))
        return -(of_policy.log_prob(actions) * returns).sum()

    return steps(optim.Adam(policy.parameters(), lr=1e-2), loss)


def actor_critic():
    """pytorch/examples: a policy and a value from one layer, with entropy."""
    net = fill(nn.ModuleDict({"affine": nn.Linear(4, 16), "actor": nn.Linear(16, 3),
                              "critic": nn.Linear(16, 1)}))
    states, actions, returns = wave(12, 4), ids(12, n=3), _returns(wave(12, place=1))

    def loss(_):
        h = F.relu(net["affine"](states))
        policy = Categorical(F.softmax(net["actor"](h), dim=-1))
        value = net["critic"](h).squeeze(1)
        advantage = returns - value.detach()
        return (-(policy.log_prob(actions) * advantage).sum()
                + F.smooth_l1_loss(value, returns, reduction="sum") - 0.1 * policy.entropy().sum())

    return steps(optim.Adam(net.parameters(), lr=1e-2), loss)


def ppo():
    """Proximal policy optimization: a ratio that is clipped, Gaussian actions."""
    class Policy(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
            self.log_std = nn.Parameter(torch.zeros(2))

        def forward(self, x):
            return torch.distributions.Normal(self.mean(x), self.log_std.exp())

    policy, states, actions = fill(Policy()), wave(16, 3), wave(16, 2, place=1)
    advantage = wave(16, place=2)
    old = policy(states).log_prob(actions).sum(1).detach()

    def loss(_):
        now = policy(states)
        ratio = (now.log_prob(actions).sum(1) - old).exp()
        clipped = ratio.clamp(0.8, 1.2) * advantage
        return -torch.min(ratio * advantage, clipped).mean() - 0.01 * now.entropy().mean()

    return steps(optim.Adam(policy.parameters(), lr=0.02), loss)


def matrix_factorization():
    """Recommendations: users times items, plus what each adds; sparse Adam's dense twin."""
    net = fill(nn.ModuleDict({
        "user": nn.Embedding(12, 4), "item": nn.Embedding(15, 4),
        "user_bias": nn.Embedding(12, 1), "item_bias": nn.Embedding(15, 1)}))
    user, item, rating = ids(40, n=12), ids(40, n=15, place=4), ids(40, n=5, place=2) + 1.0

    def loss(_):
        score = (net["user"](user) * net["item"](item)).sum(1)
        score = score + net["user_bias"](user).squeeze(1) + net["item_bias"](item).squeeze(1)
        return F.mse_loss(score, rating)

    return steps(optim.Adamax(net.parameters(), lr=0.05, weight_decay=1e-5), loss)


def wide_and_deep():
    """Wide & deep: a linear model of all fields beside an MLP of their embeddings."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.wide = nn.Linear(9 + 3, 1)
            self.embeddings = nn.ModuleList([nn.Embedding(5, 4), nn.Embedding(4, 4)])
            self.deep = nn.Sequential(nn.Linear(8 + 3, 16), nn.ReLU(), nn.Linear(16, 1))

        def forward(self, a, b, numbers):
            fields = [F.one_hot(a, 5), F.one_hot(b, 4), numbers]
            vectors = [self.embeddings[0](a), self.embeddings[1](b), numbers]
            return self.wide(torch.cat(fields, 1)) + self.deep(torch.cat(vectors, 1))

    net, a, b = fill(Net()), ids(24, n=5), ids(24, n=4, place=3)
    numbers, clicked = wave(24, 3), ids(24, 1, n=2).float()
    return steps(optim.Adagrad(net.parameters(), lr=0.05), lambda _: (
        F.binary_cross_entropy_with_logits(net(a, b, numbers), clicked)))


def deep_fm():
    """DeepFM: products of all pairs of fields by a sum of squares, and an MLP."""
    class DeepFM(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.embedding = nn.Embedding(20, 1), nn.Embedding(20, 4)
            self.mlp = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 1))

        def forward(self, fields):
            v = self.embedding(fields)
            pairs = 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(1, keepdim=True)
            return torch.sigmoid(self.linear(fields).sum(1) + pairs + self.mlp(v.flatten(1)))

    net = fill(DeepFM())
    fields = ids(24, 3, n=6) + torch.tensor([0, 6, 12])
    clicked = ids(24, 1, n=2).float()
    return steps(optim.Adam(net.parameters(), lr=0.02),
                 lambda _: F.binary_cross_entropy(net(fields), clicked))


def _graph(n):
    """A symmetric adjacency matrix with loops."""
    a = (ids(n, n, n=4) == 0).float()
    return ((a + a.T + torch.eye(n)) > 0).float()


def gcn():
    """Graph convolutions (Kipf and Welling 2017) with a normalized adjacency matrix."""
    net = fill(nn.ModuleList([nn.Linear(6, 16), nn.Linear(16, 3)]))
    a, x, y = _graph(12), wave(12, 6), ids(12, n=3)
    degree = a.sum(1).rsqrt()
    a = degree.unsqueeze(1) * a * degree
    known = torch.arange(12) < 8

    def loss(_):
        h = F.relu(a @ net[0](x))
        log_p = F.log_softmax(a @ net[1](h), dim=1)
        return F.nll_loss(log_p[known], y[known])

    return steps(optim.Adam(net.parameters(), lr=0.02, weight_decay=5e-4), loss)


def gat():
    """Graph attention: neighbours weighed by a softmax over edges."""
    class Layer(nn.Module):
        def __init__(self, width_in, width):
            super().__init__()
            self.W = nn.Linear(width_in, width, bias=False)
            self.source, self.target = nn.Linear(width, 1), nn.Linear(width, 1)

        def forward(self, x, edges):
            h = self.W(x)
            scores = F.leaky_relu(self.source(h) + self.target(h).T, 0.2)
            return scores.masked_fill(~edges, float("-inf")).softmax(1) @ h

    net = fill(nn.ModuleList([Layer(6, 8), Layer(8, 3)]))
    edges, x, y = _graph(12).bool(), wave(12, 6), ids(12, n=3)
    return steps(optim.Adam(net.parameters(), lr=0.02), lambda _: F.cross_entropy(
        net[1](F.elu(net[0](x, edges)), edges), y))
