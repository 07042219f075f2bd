"""Shortcuts for lesson 08: operations with any rule, leaves, and whether gradcheck passes."""

from __future__ import annotations

import warnings

import torch


def custom_operation(Function, value, rule):
    """An operation with the given value, and the given rule in place of its true one.

    `Function` is the base class: the one for MiniTensors, or `torch.autograd.Function`. `value` computes the output
    from the inputs. `rule(grad, *inputs)` computes what `backward` returns. All inputs are saved.
    """

    class Custom(Function):
        @staticmethod
        def forward(ctx, *inputs):
            ctx.save_for_backward(*inputs)
            return value(*inputs)

        @staticmethod
        def backward(ctx, grad):
            return rule(grad, *ctx.saved_tensors)

    return Custom.apply


def passes(function, *inputs, **options):
    """Whether PyTorch's gradcheck passes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.autograd.gradcheck(function, inputs, raise_exception=False, **options)


def leaf(value):
    """A PyTorch tensor in double precision that requires grad."""
    return torch.tensor(value, dtype=torch.float64, requires_grad=True)
