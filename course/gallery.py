# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: jupyter,tags,-all
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Gallery
#
# Every demonstration of the course, in large type. Click left of the cell below and press Shift+Enter. Then a button
# there shows one demonstration per screen, and Alt+P does the same: the other cells run by themselves. Page Down and
# Page Up turn the pages. Each demonstration has buttons for settings that are worth showing, and *Reset*. Ctrl and +
# makes everything even larger.
#
# All numbers are measured or computed at the moment when they appear; nothing is prerecorded.

# %% jupyter={"source_hidden": true}
import numpy as np
import torch

import mini_autograd
from mini_autograd.widgets import (
    accumulation,
    activations,
    be_the_engine,
    break_the_engine,
    broadcast,
    checkpoint_planner,
    explore,
    forward_or_reverse,
    lifetime,
    monitor,
    nudge,
    on_stage,
    optimizer_paths,
    step_size,
)

torch.set_num_threads(1)  # quicker for networks this small, and leaves the other cores to the browser
on_stage()

# %% [markdown]
# ## A gradient arrives
#
# Step forward, then backward. Before each backward step it asks what a node receives: which two numbers will be
# multiplied? `a` is used twice: its gradient is a sum. Drag `a` to the left: where is its gradient zero? <span
# class="needs-python">*Expression* draws any other graph.</span>

# %% jupyter={"source_hidden": true}
a = mini_autograd.tensor(2.0, requires_grad=True)
b = mini_autograd.tensor(-3.0, requires_grad=True)
d = (a + b) * a
explore(d, {"a": a, "b": b, "d": d}, predict=True)

# %% [markdown]
# ## Be the engine
#
# Now you are the engine. Which node sends next, and what does it send? *Too early* has a wrong order: which node
# gets too little?

# %% jupyter={"source_hidden": true}
be_the_engine()

# %% [markdown]
# ## The same in PyTorch
#
# A layer and its loss, as PyTorch recorded them. Click a node to see what it saved, and its local derivative.

# %% jupyter={"source_hidden": true}
torch.manual_seed(0)
weight = torch.randn(3, 2, requires_grad=True)
bias = torch.zeros(2, requires_grad=True)
loss = (torch.ones(4, 3) @ weight + bias).tanh().pow(2).mean()
explore(loss, {"weight": weight, "bias": bias, "loss": loss})

# %% [markdown]
# ## What a graph does not know
#
# The target is computed under `no_grad`, from the same weight. A graph keeps no trace of it, so the explorer gets a
# function and watches while it runs. Which of the two paths to `w` will the gradient take?

# %% jupyter={"source_hidden": true}
w, x = torch.tensor(3.0, requires_grad=True), torch.tensor(2.0)


def loss_with_target():
    with torch.no_grad():
        target = (w * x).tanh() + 1
    return (w * x - target) ** 2


explore(loss_with_target, {"w": w, "x": x})

# %% [markdown]
# ## Nudge and watch
#
# A step of `a` runs forward through the graph; the gradient predicts how much the result changes. On which side of the
# prediction will the true change be? Which expression has no gap?

# %% jupyter={"source_hidden": true}
nudge()

# %% [markdown]
# ## Break the engine
#
# Two engines train the same network, and one has a bug. Which of the five is it? Even a broken engine often learns.

# %% jupyter={"source_hidden": true}
break_the_engine()

# %% [markdown]
# ## How small should a step be?
#
# Which `h` is best for a numerical derivative? Predict it, then make `h` smaller. Why is it different in float32?

# %% jupyter={"source_hidden": true}
step_size()

# %% [markdown]
# ## Shapes that stretch
#
# <span class="needs-python">Type two shapes.</span> Which axes will the gradient be summed over?

# %% jupyter={"source_hidden": true}
broadcast()

# %% [markdown]
# ## Nobody cleared the gradient
#
# First the bug: the loss falls *faster*. Then compare with momentum 1.0. Then try small batches.

# %% jupyter={"source_hidden": true}
accumulation()

# %% [markdown]
# ## How long things live
#
# A training step in slow motion. Which of the settings is a leak?

# %% jupyter={"source_hidden": true}
lifetime()

# %% [markdown]
# ## Units that pass gradient, and dead ones
#
# <span class="needs-python">Move x from left to right.</span> Push three units down, and train: which ones come back?

# %% jupyter={"source_hidden": true}
activations()

# %% [markdown]
# ## Four walkers
#
# Same start, same learning rate. Which one arrives first? Which one never does?

# %% jupyter={"source_hidden": true}
optimizer_paths()

# %% [markdown]
# ## Forward or reverse?
#
# How many passes do n inputs and m outputs need, and how long do they take?

# %% jupyter={"source_hidden": true}
forward_or_reverse()

# %% [markdown]
# ## Time for memory
#
# How long should a segment between two checkpoints be? Predicted and measured.

# %% jupyter={"source_hidden": true}
checkpoint_planner()

# %% [markdown]
# ## Watching a loop
#
# Any loop, any engine. <span class="needs-python">Run this cell again to see the curves grow; interrupt it, and the
# curves so far stay.</span>

# %%
model = torch.nn.Sequential(
    torch.nn.Linear(2, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
inputs = torch.tensor(np.random.default_rng(0).uniform(-2, 2, (512, 2)), dtype=torch.float32)
targets = torch.sin(2 * inputs[:, :1]) * torch.cos(inputs[:, 1:])
for _ in monitor(3000, model=model):
    rows = torch.randint(512, (64,))
    loss = torch.nn.functional.mse_loss(model(inputs[rows]), targets[rows])
    loss.backward()
    monitor.log(loss=loss)
    optimizer.step()
    optimizer.zero_grad()
