"""A variational autoencoder: noise that gradients pass through, two losses in one, and samples at the end."""

import torch
from torch import nn, optim
from torch.nn import functional as F  # noqa: N812
from torch.utils.data.dataloader import DataLoader
from torch.utils.data.dataset import TensorDataset

torch.manual_seed(3)
device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
torch.set_default_dtype(torch.float64)
print(device)

columns, rows = torch.arange(6).view(6, 1).expand(6, 6), torch.arange(6).expand(6, 6)
shapes = [columns == rows, columns + rows == 5, columns == 2, rows == 3]
pictures = torch.stack([shapes[n % 4].double() for n in range(48)])
pictures = (pictures * 0.9 + 0.05 + 0.04 * torch.rand(48, 6, 6)).clamp(0, 1)
loader = DataLoader(TensorDataset(pictures, torch.arange(48) % 4), batch_size=12, shuffle=True)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(36, 20)
        self.mean, self.spread = nn.Linear(20, 3), nn.Linear(20, 3)
        self.outer, self.picture = nn.Linear(3, 20), nn.Linear(20, 36)

    def encode(self, x):
        h = F.relu(self.inner(x))
        return self.mean(h), self.spread(h)

    def drawn(self, mean, log_variance):
        return mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)

    def decode(self, z):
        return torch.sigmoid(self.picture(F.relu(self.outer(z))))

    def forward(self, x):
        mean, log_variance = self.encode(x.view(-1, 36))
        return self.decode(self.drawn(mean, log_variance)), mean, log_variance


def loss_of(found, x, mean, log_variance):
    """How well the pictures are reconstructed, and how far the codes are from a normal distribution."""
    back = F.binary_cross_entropy(found, x.view(-1, 36), reduction="sum")
    away = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
    return back + away


model = Autoencoder().to(device)
optimizer = optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(1, 9):
    model.train()
    total = 0.0
    for number, (x, _) in enumerate(loader):
        x = x.to(device)
        optimizer.zero_grad()
        found, mean, log_variance = model(x)
        loss = loss_of(found, x, mean, log_variance)
        loss.backward()
        total += loss.item()
        optimizer.step()
        if number % 2 == 0:
            print(f"epoch {epoch} [{number * len(x)}/{len(loader.dataset)}] loss {loss.item() / len(x):.6f}")
    model.eval()
    with torch.no_grad():
        sample = model.decode(torch.randn(4, 3).to(device)).cpu()
    print(f"average {total / len(loader.dataset):.5f}, samples {sample.mean():.5f} {sample.var():.5f}")
