"""`torch.optim`: optimisers and schedules of the learning rate."""

from mini_autograd.optim import lr_scheduler
from mini_autograd.optim.adaptive import Adadelta, Adagrad, Adamax
from mini_autograd.optim.algorithms import SGD, Adam, AdamW, RMSprop
from mini_autograd.optim.optimizer import Optimizer

__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Optimizer", "RMSprop", "lr_scheduler"]
