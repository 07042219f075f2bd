"""Contrastive learning: pairs from a custom sampler and collate function, a custom optimizer, an average of the
weights, a schedule, and a checkpoint from which the training continues. The test compares what it prints.
"""

import copy
import io

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset, Sampler

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


class Sequences(Dataset):
    """Sequences of several lengths around a few centers."""

    def __init__(self, count):
        centers = torch.randn(4, 6)
        self.samples = [(centers[n % 4] + 0.3 * torch.randn(2 + n % 3, 6), n % 4) for n in range(count)]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


class ByLength(Sampler):
    def __init__(self, data):
        self.order = sorted(range(len(data)), key=lambda index: len(data[index][0]))

    def __iter__(self):
        return iter(self.order)

    def __len__(self):
        return len(self.order)


def collate(batch):
    sequences, labels = zip(*batch, strict=True)
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    return pad_sequence(sequences, batch_first=True), lengths, torch.tensor(labels)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(6, 2, 12, dropout=0.0, batch_first=True)
        self.head = nn.Linear(6, 3)

    def forward(self, x, lengths):
        hidden = torch.arange(x.size(1))[None] >= lengths[:, None]
        x = self.layer(x, src_key_padding_mask=hidden).masked_fill(hidden[..., None], 0.0)
        return F.normalize(self.head(x.sum(1) / lengths[:, None]), dim=-1)


class HeavyBall(torch.optim.Optimizer):
    def __init__(self, params, lr, beta=0.9):
        super().__init__(params, {"lr": lr, "beta": beta})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["mean"] = torch.zeros_like(p, memory_format=torch.preserve_format)
                state["mean"].mul_(group["beta"]).add_(p.grad, alpha=1 - group["beta"])
                p.add_(state["mean"], alpha=-group["lr"])


def contrastive_loss(z, labels, temperature=0.5):
    similar = (z @ z.T / temperature).fill_diagonal_(-torch.inf)
    alike = (labels[:, None] == labels[None]).fill_diagonal_(False)
    partner = alike.double().argmax(dim=1)
    return F.cross_entropy(similar[alike.any(1)], partner[alike.any(1)])


data = Sequences(24)
loader = DataLoader(data, batch_size=8, sampler=ByLength(data), collate_fn=collate, num_workers=0)
model = Encoder()
average = copy.deepcopy(model).requires_grad_(False)
optimizer = HeavyBall(model.parameters(), lr=0.3)
schedule = LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
print(model)
print(optimizer)


def train(epochs):
    for epoch in range(epochs):
        total = 0.0
        for x, lengths, labels in loader:
            loss = contrastive_loss(model(x, lengths), labels)
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += loss.item()
            for mean, p in zip(average.parameters(), model.parameters(), strict=True):
                mean.lerp_(p.detach(), 0.1)
        print(
            f"{epoch} {total / len(loader):.6f} {norm:.6f} {schedule.get_last_lr()[0]:.4f} {x.shape} {labels.tolist()}"
        )


train(3)
file = io.BytesIO()
torch.save({"epoch": 3, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "name": "pairs"}, file)
train(1)
file.seek(0)
checkpoint = torch.load(file)
print(model.load_state_dict(checkpoint["model"]), checkpoint["epoch"], checkpoint["name"])
optimizer.load_state_dict(checkpoint["optimizer"])
train(1)
for name, value in average.state_dict().items():
    print(name, value.size(), f"{value.norm():.6f}")
x, lengths, labels = next(iter(loader))
print(average(x, lengths).max(dim=1))
