#!/usr/bin/env python3
"""The models of training_bench in PyTorch, on one thread: CPU seconds of forward, backward and update of one
micro-batch, the least of many rounds, as JSON. torch_training.py mlp|gpt SAMPLES ROUNDS; exit code 77 without PyTorch."""
import json
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(f"no PyTorch: {error}", file=sys.stderr)
    sys.exit(77)

MLP = [784, 1024, 1024, 10]
LAYERS, HIDDEN, HEADS, SEQUENCE, WORDS = 8, 256, 8, 64, 1000


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linears = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in zip(MLP, MLP[1:]))

    def forward(self, x):
        for linear in self.linears[:-1]:
            x = F.relu(linear(x))
        return self.linears[-1](x)


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(HIDDEN) for _ in range(2))
        self.qkv, self.out = torch.nn.Linear(HIDDEN, 3 * HIDDEN), torch.nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = torch.nn.Linear(HIDDEN, 4 * HIDDEN), torch.nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x, mask):
        b = x.shape[0]
        q, k, v = (t.view(b, SEQUENCE, HEADS, -1).transpose(1, 2) for t in self.qkv(self.norms[0](x)).split(HIDDEN, 2))
        scores = (q @ k.transpose(2, 3)) * (HIDDEN // HEADS) ** -0.5
        mixed = F.softmax(scores.masked_fill(mask, float("-inf")), -1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(b, SEQUENCE, HIDDEN))
        return x + self.down(F.gelu(self.up(self.norms[1](x)), approximate="tanh"))


class Gpt(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(WORDS, HIDDEN), torch.nn.Embedding(SEQUENCE, HIDDEN)
        self.layers = torch.nn.ModuleList(Decoder() for _ in range(LAYERS))
        self.norm, self.head = torch.nn.LayerNorm(HIDDEN), torch.nn.Linear(HIDDEN, WORDS, bias=False)
        self.register_buffer("mask", torch.ones(SEQUENCE, SEQUENCE).triu(1).bool())

    def forward(self, words):
        x = self.words(words) + self.places.weight
        for layer in self.layers:
            x = layer(x, self.mask)
        return self.head(self.norm(x))


def data_of(name, samples):
    if name == "mlp":
        return torch.randn(samples, MLP[0]), torch.zeros(samples, MLP[-1])
    words = torch.randint(WORDS, (samples, SEQUENCE))
    return words, words.view(-1)


def loss_of(name, outputs, targets):
    return F.mse_loss(outputs, targets) if name == "mlp" else F.cross_entropy(outputs.view(-1, WORDS), targets)


def library():
    """The library of matrix products that this process has loaded."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "blas" in line}
    return ", ".join(sorted({path.rsplit("/", 1)[-1] for path in paths})) or "built in"


def main():
    name, samples, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = Mlp() if name == "mlp" else Gpt()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    best = {}
    for round in range(rounds + 1):
        times = {}
        inputs, targets = data_of(name, samples)
        start = time.process_time()
        loss = loss_of(name, model(inputs), targets)
        times["forward"] = time.process_time() - start
        start = time.process_time()
        loss.backward()
        times["backward"] = time.process_time() - start
        start = time.process_time()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        times["update"] = time.process_time() - start
        if round > 0:  # The first makes the states of the optimizer.
            best = {k: min(t, best.get(k, t)) for k, t in times.items()}
    best["parameters"] = sum(p.numel() for p in model.parameters())
    best["version"] = f"{torch.__version__}, {library()}"
    print(json.dumps(best))


main()
