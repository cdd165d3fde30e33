# spec/ports/torch_recurrent.py: sequences step by step. N batch, T steps.
import torch
from formulas import fill, ids, steps, wave
from torch import nn, optim
from torch.nn import functional as F


def char_rnn():
    """Classifying names by a character-level RNN, from its linear layers."""
    class RNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.i2h = nn.Linear(12, 16)
            self.h2h = nn.Linear(16, 16)
            self.h2o = nn.Linear(16, 5)

        def forward(self, x, hidden):
            hidden = torch.tanh(self.i2h(x) + self.h2h(hidden))
            return F.log_softmax(self.h2o(hidden), dim=1), hidden

    net, names, labels = fill(RNN()), F.one_hot(ids(6, 7, n=12), 12).float(), ids(6, n=5)

    def loss(_):
        hidden = torch.zeros(6, 16)
        for t in range(7):
            output, hidden = net(names[:, t], hidden)
        return F.nll_loss(output, labels)

    return steps(optim.SGD(net.parameters(), lr=0.1), loss)


def word_lm():
    """The word language model of pytorch/examples: a GRU in pieces, with its state carried on."""
    class LM(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Embedding(15, 12)
            self.rnn = nn.GRU(12, 16, num_layers=2, batch_first=True)
            self.decoder = nn.Linear(16, 15)

        def forward(self, x, state):
            y, state = self.rnn(self.encoder(x), state)
            return self.decoder(y), state

    net, text = fill(LM()), ids(4, 41, n=15)
    state = None
    optimizer = optim.SGD(net.parameters(), lr=0.5)
    losses = []
    for step in range(20):
        at = step % 4 * 10
        if at == 0:
            state = None
        logits, state = net(text[:, at:at + 10], state)
        state = state.detach()
        loss = F.cross_entropy(logits.flatten(0, 1), text[:, at + 1:at + 11].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.25)
        optimizer.step()
        losses.append(loss.item())
    return losses


def lstm_tagger():
    """An LSTM tagger, on sentences of different lengths."""
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.word_embeddings = nn.Embedding(25, 8)
            self.lstm = nn.LSTM(8, 8, batch_first=True, bidirectional=True)
            self.hidden2tag = nn.Linear(16, 4)

        def forward(self, words, lengths):
            x = nn.utils.rnn.pack_padded_sequence(
                self.word_embeddings(words), lengths, batch_first=True, enforce_sorted=False)
            y, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(x)[0], batch_first=True)
            return self.hidden2tag(y)

    net, words, tags = fill(Tagger()), ids(4, 6, n=25), ids(4, 6, n=4, place=5)
    lengths = torch.tensor([6, 3, 5, 2])
    tags[torch.arange(6) >= lengths.unsqueeze(1)] = -100
    return steps(optim.Adam(net.parameters(), lr=0.02),
                 lambda _: F.cross_entropy(net(words, lengths).transpose(1, 2), tags))


def sine_lstm():
    """Time sequence prediction: two LSTM cells over sines, by L-BFGS."""
    class Sequence(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm1 = nn.LSTMCell(1, 8)
            self.lstm2 = nn.LSTMCell(8, 8)
            self.linear = nn.Linear(8, 1)

        def forward(self, x):
            h1, c1, h2, c2 = (torch.zeros(len(x), 8) for _ in range(4))
            outputs = []
            for t in range(x.shape[1]):
                h1, c1 = self.lstm1(x[:, t:t + 1], (h1, c1))
                h2, c2 = self.lstm2(h1, (h2, c2))
                outputs.append(self.linear(h2))
            return torch.cat(outputs, dim=1)

    net = fill(Sequence())
    x = torch.sin(torch.arange(13) * 0.5 + torch.arange(3).unsqueeze(1))
    optimizer = optim.LBFGS(net.parameters(), lr=0.5, max_iter=2)

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(net(x[:, :-1]), x[:, 1:])
        loss.backward()
        return loss

    return [optimizer.step(closure).item() for _ in range(20)]


def seq2seq():
    """Translation by GRUs with additive attention (Bahdanau), teacher forcing."""
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.Wa = nn.Linear(12, 12)
            self.Ua = nn.Linear(12, 12)
            self.Va = nn.Linear(12, 1)

        def forward(self, query, keys):
            scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys))).transpose(1, 2)
            return torch.bmm(F.softmax(scores, dim=-1), keys)

    class Seq2Seq(nn.Module):
        def __init__(self):
            super().__init__()
            self.source = nn.Embedding(15, 12)
            self.encoder = nn.GRU(12, 12, batch_first=True)
            self.target = nn.Embedding(14, 12)
            self.attention = Attention()
            self.decoder = nn.GRU(24, 12, batch_first=True)
            self.out = nn.Linear(12, 14)

        def forward(self, source, target):
            keys, hidden = self.encoder(self.source(source))
            outputs = []
            for t in range(target.shape[1]):
                context = self.attention(hidden.transpose(0, 1), keys)
                x = torch.cat([self.target(target[:, t:t + 1]), context], dim=2)
                y, hidden = self.decoder(x, hidden)
                outputs.append(y)
            return self.out(torch.cat(outputs, dim=1))

    net, source, target = fill(Seq2Seq()), ids(4, 6, n=15), ids(4, 6, n=14, place=5)
    return steps(optim.Adam(net.parameters(), lr=0.01), lambda _: F.cross_entropy(
        net(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten()))


def tcn():
    """A temporal convolutional network (Bai et al. 2018): causal, dilated, weight_norm."""
    norm = nn.utils.parametrizations.weight_norm

    class Block(nn.Module):
        def __init__(self, width_in, width, dilation):
            super().__init__()
            self.padding = 2 * dilation
            self.conv1 = norm(nn.Conv1d(width_in, width, 3, dilation=dilation))
            self.conv2 = norm(nn.Conv1d(width, width, 3, dilation=dilation))
            self.downsample = nn.Conv1d(width_in, width, 1)

        def forward(self, x):
            y = F.relu(self.conv1(F.pad(x, (self.padding, 0))))
            y = F.relu(self.conv2(F.pad(y, (self.padding, 0))))
            return F.relu(y + self.downsample(x))

    net = fill(nn.Sequential(Block(2, 8, 1), Block(8, 8, 2), nn.Conv1d(8, 1, 1)))
    x = wave(4, 2, 20)
    y = x.sum(1, keepdim=True).roll(1, dims=2)
    return steps(optim.Adam(net.parameters(), lr=0.01), lambda _: F.mse_loss(net(x), y))
