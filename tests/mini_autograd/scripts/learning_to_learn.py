"""Meta-learning with steps that are themselves differentiated, gradients per example, products with the Hessian, and
networks side by side, with old names and texts. The test compares what it prints.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.autograd import Variable
from torch.func import functional_call, grad, jacfwd, jacrev, stack_module_state, vmap

torch.manual_seed(1)
torch.set_default_dtype(torch.float64)

net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)


def task():
    amplitude, phase = torch.rand(1) * 4 + 0.1, torch.rand(1) * torch.pi

    def sample(count):
        x = torch.rand(count, 1) * 10 - 5
        return x, amplitude * torch.sin(x + phase)

    return sample


for step in range(3):
    optimizer.zero_grad()
    total = 0.0
    for _ in range(2):
        sample = task()
        x, y = sample(5)
        params = dict(net.named_parameters())
        for _ in range(2):
            loss = F.mse_loss(functional_call(net, params, (x,)), y)
            grads = torch.autograd.grad(loss, params.values(), create_graph=True)
            params = {name: p - 0.05 * g for (name, p), g in zip(params.items(), grads, strict=True)}
        x, y = sample(6)
        total = total + F.mse_loss(functional_call(net, params, x), y)
    total.backward()
    optimizer.step()
    print(f"{step} {total.item():.6f} {net[0].weight.grad.norm().item():.6f}")

# gradients per example
layer = nn.Linear(3, 1)
params = {name: p.detach() for name, p in layer.named_parameters()}
inputs, targets = torch.randn(5, 3), torch.randn(5, 1)


def loss_of_one(params, x, y):
    return F.mse_loss(functional_call(layer, params, (x.unsqueeze(0),)), y.unsqueeze(0))


each = vmap(grad(loss_of_one), in_dims=(None, 0, 0))(params, inputs, targets)
print({name: g.shape for name, g in each.items()}, each["bias"].squeeze())
print(jacrev(lambda w, b: w @ w + b, argnums=(0, 1))(torch.eye(2), torch.ones(2))[1].shape)
print(jacfwd(torch.sin)(torch.arange(3.0)))

# networks side by side
networks = [nn.Linear(3, 2) for _ in range(4)]
stacked, buffers = stack_module_state(networks)
print(vmap(lambda p, b: functional_call(networks[0], (p, b), (inputs,)), in_dims=(0, 0))(stacked, buffers).shape)

# products with the Hessian, and the whole Hessian
w = Variable(torch.Tensor([0.1, -0.2, 0.3]), requires_grad=True)


def risk(w):
    return F.binary_cross_entropy_with_logits(inputs @ w, (targets > 0).double().squeeze(1)) + 0.05 * w.pow(2).sum()


gradient = torch.autograd.grad(risk(w), w, create_graph=True, only_inputs=True)[0]
rows = torch.autograd.grad(gradient, w, grad_outputs=torch.eye(3), is_grads_batched=True, retain_graph=True)[0]
print(rows, torch.autograd.grad(gradient @ torch.ones(3), w)[0])
print(torch.autograd.functional.hessian(risk, w.detach()).aminmax())

# errors are worded as in PyTorch
for wrong in (
    lambda: functional_call(layer, {"weight": torch.ones(2, 3)}, inputs, strict=True),
    lambda: torch.mul(w, w, out=torch.empty(3)),
    lambda: stack_module_state([]),
    lambda: torch.Tensor(2.5),
    lambda: nn.Parameter([1.0, 2.0]),
    lambda: torch.zeros(2, 3).shape.numel() + torch.ones(3).view(2, 2),
):
    try:
        print(wrong())
    except (RuntimeError, TypeError, AttributeError) as error:
        print(type(error).__name__, error)
