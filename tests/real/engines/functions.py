"""Arrays; a class per operation; functions are called by their generation, and their inputs' gradients are summed."""

import numpy as np


class Variable:
    def __init__(self, data):
        self.data = np.asarray(data, dtype=np.float64)
        self.grad = None
        self.creator = None
        self.generation = 0

    @property
    def shape(self):
        return self.data.shape

    def backward(self, retain_grad=False):
        self.grad = np.ones_like(self.data)
        todo = [self.creator] if self.creator else []
        while todo:
            todo.sort(key=lambda function: function.generation)
            function = todo.pop()
            shares = function.backward(function.output.grad)
            shares = shares if isinstance(shares, tuple) else (shares,)
            for source, share in zip(function.inputs, shares, strict=True):
                source.grad = share if source.grad is None else source.grad + share
                if source.creator and source.creator not in todo:
                    todo.append(source.creator)
            if not retain_grad:
                function.output.grad = None

    def __add__(self, other):
        return Add()(self, other)

    def __mul__(self, other):
        return Mul()(self, other)

    def __sub__(self, other):
        return Sub()(self, other)

    def __matmul__(self, other):
        return MatMul()(self, other)

    def sum(self):
        return Sum()(self)

    def mean(self):
        return Mean()(self)

    def exp(self):
        return Exp()(self)


class Function:
    def __call__(self, *inputs):
        self.inputs = [source if isinstance(source, Variable) else Variable(source) for source in inputs]
        output = Variable(self.forward(*(source.data for source in self.inputs)))
        self.generation = max(source.generation for source in self.inputs)
        output.generation = self.generation + 1
        output.creator, self.output = self, output
        return output


def sum_to(grad, shape):
    lead = grad.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(axis + lead for axis, size in enumerate(shape) if size == 1)
    grad = grad.sum(axis=axes, keepdims=True)
    return grad.reshape(shape)


class Add(Function):
    def forward(self, a, b):
        return a + b

    def backward(self, grad):
        a, b = self.inputs
        return sum_to(grad, a.shape), sum_to(grad, b.shape)


class Sub(Function):
    def forward(self, a, b):
        return a - b

    def backward(self, grad):
        a, b = self.inputs
        return sum_to(grad, a.shape), sum_to(-grad, b.shape)


class Mul(Function):
    def forward(self, a, b):
        return a * b

    def backward(self, grad):
        a, b = self.inputs
        return sum_to(grad * b.data, a.shape), sum_to(grad * a.data, b.shape)


class MatMul(Function):
    def forward(self, a, b):
        return a @ b

    def backward(self, grad):
        a, b = self.inputs
        return grad @ b.data.T, a.data.T @ grad


class Sum(Function):
    def forward(self, a):
        return a.sum()

    def backward(self, grad):
        return grad * np.ones(self.inputs[0].shape)


class Mean(Function):
    def forward(self, a):
        return a.mean()

    def backward(self, grad):
        return grad * np.ones(self.inputs[0].shape) / self.inputs[0].data.size


class Exp(Function):
    def forward(self, a):
        return np.exp(a)

    def backward(self, grad):
        return grad * self.output.data
