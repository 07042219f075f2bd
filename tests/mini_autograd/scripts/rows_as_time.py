"""Pictures read row by row: an LSTM over the rows, dropout, batch normalization, a schedule, training and testing."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn, optim
from torch.optim.lr_scheduler import StepLR

torch.manual_seed(11)
torch.set_default_dtype(torch.float64)
device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.LSTM(input_size=8, hidden_size=12, batch_first=True)
        self.norm = nn.BatchNorm1d(12)
        self.drop = nn.Dropout(0.0)
        self.inner, self.outer = nn.Linear(12, 10), nn.Linear(10, 4)

    def forward(self, x):
        x = x.reshape(-1, 8, 8)
        found, _ = self.rows(x)
        x = self.drop(self.norm(found[:, -1, :]))
        return F.log_softmax(self.outer(F.relu(self.inner(x))), dim=1)


def pictures(count):
    labels = torch.arange(count) % 4
    x = torch.rand(count, 1, 8, 8) * 0.3
    for number, label in enumerate(labels.tolist()):
        x[number, 0, 2 * label : 2 * label + 2, :] += 0.7 if number % 3 else 0.5
    return x, labels


def train(model, x, labels, optimizer, epoch):
    model.train()
    for number, (part, wanted) in enumerate(zip(x.split(12), labels.split(12), strict=True)):
        part, wanted = part.to(device), wanted.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(part), wanted)
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch} batch {number} loss {loss.item():.6f}")


def test(model, x, labels):
    model.eval()
    loss, correct = 0.0, 0
    with torch.no_grad():
        for part, wanted in zip(x.split(10), labels.split(10), strict=True):
            output = model(part.to(device))
            loss += F.nll_loss(output, wanted, reduction="sum").item()
            guess = output.argmax(dim=1, keepdim=True)
            correct += guess.eq(wanted.view_as(guess)).sum().item()
    print(f"test: loss {loss / len(x):.5f}, {correct} of {len(x)}")


model = Reader().to(device)
optimizer = optim.RMSprop(model.parameters(), lr=0.02)
schedule = StepLR(optimizer, step_size=1, gamma=0.7)
(x, labels), (x_test, labels_test) = pictures(48), pictures(20)
for epoch in range(1, 6):
    train(model, x, labels, optimizer, epoch)
    test(model, x_test, labels_test)
    schedule.step()
print({name: tuple(value.shape) for name, value in model.state_dict().items()})
