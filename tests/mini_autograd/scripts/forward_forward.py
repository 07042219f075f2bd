"""Layers that learn without a backward pass through the network: each is trained on its own to tell right pairs of a
picture and a label from wrong ones.
"""

import torch
from torch import nn
from torch.optim import Adam

torch.manual_seed(5)
torch.set_default_dtype(torch.float64)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Layer(nn.Linear):
    def __init__(self, inputs, outputs, threshold=1.5):
        super().__init__(inputs, outputs, bias=True)
        self.activation = nn.ReLU()
        self.optimizer = Adam(self.parameters(), lr=0.03)
        self.threshold = threshold

    def forward(self, x):
        direction = x / (x.norm(2, 1, keepdim=True) + 1e-4)
        return self.activation(torch.mm(direction, self.weight.T) + self.bias.unsqueeze(0))

    def train_on(self, right, wrong, steps=10):
        for step in range(steps):
            for_right = self.forward(right).pow(2).mean(1)
            for_wrong = self.forward(wrong).pow(2).mean(1)
            loss = torch.log(1 + torch.exp(torch.cat([self.threshold - for_right, for_wrong - self.threshold]))).mean()
            self.optimizer.zero_grad()
            loss.backward()  # of this layer alone: its input has no history
            self.optimizer.step()
            print(f"{step} loss {loss.item():.6f} right {for_right.mean():.5f} wrong {for_wrong.mean():.5f}")
        return self.forward(right).detach(), self.forward(wrong).detach()


def with_label(x, labels, classes=3):
    x = x.clone()
    x[:, :classes] *= 0.0
    x[range(x.shape[0]), labels] = x.max()
    return x


centers = torch.randn(3, 12)
labels = torch.arange(30) % 3
x = (centers[labels] + 0.4 * torch.randn(30, 12)).to(device)
layers = [Layer(12, 24).to(device), Layer(24, 24).to(device)]
right, wrong = with_label(x, labels), with_label(x, labels[torch.randperm(30)])
for number, layer in enumerate(layers):
    print("layer", number)
    right, wrong = layer.train_on(right, wrong)

goodness = []
for label in range(3):
    h, total = with_label(x, torch.full((30,), label)), []
    for layer in layers:
        h = layer(h)
        total.append(h.pow(2).mean(1))
    goodness.append(sum(total).unsqueeze(1))
guesses = torch.cat(goodness, 1).argmax(1)
print("error", 1.0 - guesses.eq(labels).float().mean().item())
