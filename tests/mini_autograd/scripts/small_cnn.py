"""Train a small convolutional network to tell which way the stripes in a noisy picture run."""

import torch
from torch import nn

STEPS = 100


def make_batch(count, size=12):
    angles = torch.randint(0, 4, (count,))
    phases = torch.rand(count, 1, 1, dtype=torch.float64) * 6.28
    rows = torch.arange(size, dtype=torch.float64).reshape(1, size, 1)
    columns = torch.arange(size, dtype=torch.float64).reshape(1, 1, size)
    turned = angles.double().reshape(count, 1, 1) * (3.14159265 / 4)
    waves = torch.sin(1.5 * (rows * torch.cos(turned) + columns * torch.sin(turned)) + phases)
    pictures = waves + 0.7 * torch.randn(count, size, size, dtype=torch.float64)
    return pictures.unsqueeze(1), angles


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return torch.relu(x + self.norm(self.conv(x)))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 8, kernel_size=3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.blocks = nn.ModuleList([Residual(8), Residual(8)])
        self.down = nn.Conv2d(8, 12, kernel_size=3, stride=2, groups=2)
        self.drop = nn.Dropout(0.2)
        self.last = nn.Linear(12, 4)
        nn.init.kaiming_normal_(self.first.weight.data.double(), nonlinearity="relu")

    def forward(self, x):
        x = torch.relu(self.norm(self.first(x)))
        for block in self.blocks:
            x = block(x)
        x = nn.functional.max_pool2d(x, 2)
        x = nn.functional.gelu(self.down(x))
        x = nn.functional.avg_pool2d(x, x.shape[-1]).flatten(1)
        return self.last(self.drop(x))


torch.manual_seed(1)
model = Network().double()
decayed = [p for p in model.parameters() if p.dim() > 1]
others = [p for p in model.parameters() if p.dim() <= 1]
optimizer = torch.optim.AdamW(
    [{"params": decayed, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}], lr=5e-3
)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=40, gamma=0.5)
criterion = nn.CrossEntropyLoss()

losses, norms = [], []
for _ in range(STEPS):
    pictures, angles = make_batch(24)
    model.train()
    optimizer.zero_grad(set_to_none=True)
    loss = criterion(model(pictures), angles)
    loss.backward()
    norms.append(nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0).item())
    optimizer.step()
    schedule.step()
    losses.append(loss.item())

model.eval()
with torch.no_grad():
    pictures, angles = make_batch(200)
    accuracy = (model(pictures).argmax(1) == angles).double().mean().item()
print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, accuracy on new pictures {accuracy:.1%}")
