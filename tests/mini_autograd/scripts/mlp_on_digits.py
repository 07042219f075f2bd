"""Train a multilayer perceptron on pictures of digits, drawn here as seven-segment displays with noise."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset, random_split

STEPS = 100
SEGMENTS = ("abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcdfg")
STROKES = {
    "a": (slice(0, 1), slice(1, 5)),
    "b": (slice(1, 4), slice(5, 6)),
    "c": (slice(5, 8), slice(5, 6)),
    "d": (slice(8, 9), slice(1, 5)),
    "e": (slice(5, 8), slice(0, 1)),
    "f": (slice(1, 4), slice(0, 1)),
    "g": (slice(4, 5), slice(1, 5)),
}


def draw(digit):
    picture = torch.zeros(9, 6, dtype=torch.float64)
    for segment in SEGMENTS[digit]:
        rows, columns = STROKES[segment]
        picture[rows, columns] = 1.0
    return picture


def make_data(count):
    clean = torch.stack([draw(digit) for digit in range(10)])
    labels = torch.randint(0, 10, (count,))
    noise = torch.randn(count, 9, 6, dtype=torch.float64)
    return TensorDataset(clean[labels] + 0.5 * noise, labels)


torch.manual_seed(0)
train, test = random_split(make_data(1200), [1000, 200])
model = nn.Sequential(
    nn.Flatten(),
    nn.Linear(54, 64),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Linear(64, 32),
    nn.Tanh(),
    nn.Linear(32, 10),
).double()
optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)
loader = DataLoader(train, batch_size=32, shuffle=True, drop_last=True)

losses = []
while len(losses) < STEPS:
    for pictures, labels in loader:
        if len(losses) == STEPS:
            break
        optimizer.zero_grad()
        loss = F.cross_entropy(model(pictures), labels, label_smoothing=0.05)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())

model.eval()
with torch.no_grad():
    right = sum((model(x).argmax(dim=1) == y).sum().item() for x, y in DataLoader(test, batch_size=50))
accuracy = right / len(test)
print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, accuracy on new digits {accuracy:.1%}")
