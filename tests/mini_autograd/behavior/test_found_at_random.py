"""What the random programs found (see test_random_programs.py), reduced to small cases: the same as under PyTorch."""

import pytest

from tests.mini_autograd.same_as_torch import same, script, usual_names

FOUND = {
    "a 0-d result is no view of another": "y = s.gather(0, lib.tensor(0)); y.detach_(); y._is_view()",
    "nor is a 0-d cumsum": "s.cumsum(0)._is_view(), s.softmax(0)._is_view(), s.max(0)[0]._is_view()",
    "nor is a 0-d index_select": "s.index_select(0, lib.tensor([0]))._is_view()",
    "a gradient is retained once for a 0-d gather": "y = s.gather(0, lib.tensor(0)); y.retain_grad(); y.t().mul_(2); "
    "(y * y.detach()).backward(); y.grad",
    "the result of exp_ on a view leads to its base": "y = x * 0.1; v = y[1:]; v.exp_(); "
    "(g,) = lib.autograd.grad((y * y.detach()).sum(), x, create_graph=True); "
    "lib.autograd.grad(g.sum(), [y, x], allow_unused=True)",
    "a view that was changed through its base retains the new gradient": "y = x * 1; v = y[1:]; v.retain_grad(); "
    "o = v * 10; y.mul_(2); ((v * v).sum() + o.sum()).backward(); v.grad, v.retains_grad, x.grad",
    "a view that was changed itself retains the new gradient": "y = x * 1; v = y[1:]; v.retain_grad(); o = v * 10; "
    "v.mul_(2); ((v * v).sum() + o.sum()).backward(); v.grad, v.retains_grad, x.grad",
    "a changed view does without its old hook": "y = x * 1; v = y[1:]; v.register_hook(lambda g: g * 10); "
    "v.view(-1).mul_(2); (v * 1).sum().backward(); x.grad",
    "what used the view before goes through the hook": "y = x * 1; v = y[1:]; v.register_hook(lambda g: g * 10); "
    "o = v * 1; v.mul_(2); ((v * 1).sum() + o.sum()).backward(); x.grad",
    "the second gradient of 0 to a power": "a = f * 0; "
    "(g,) = lib.autograd.grad((a ** x).sum(), x, create_graph=True); lib.autograd.grad(g.sum(), x)",
    "first gradients of 0 to a power": "a = (x - 1); lib.autograd.grad((a ** x).sum(), x)",
    "an infinite gradient stops at relu": "lib.autograd.grad(lib.relu(x - 2).sqrt().sum(), x)",
    "and in a recorded pass": "lib.autograd.grad(lib.relu(x - 2).sqrt().sum(), x, create_graph=True)",
    "relu of nan": "lib.autograd.grad(lib.relu(x * float('nan')).sum(), x)",
    "a node whose gradient was asked for is run": "y = x.exp(); y.sum().backward(); (y * 2).sum().backward(inputs=[y])",
    "and freed": "y = x.exp(); (y * 2).sum().backward(inputs=[y]); y.sum().backward()",
    "and its hooks are called": "y = x.exp(); seen = []; "
    "h = y.grad_fn.register_hook(lambda after, before: seen.append(before)); "
    "(y * 2).sum().backward(inputs=[y], retain_graph=True); seen, y.grad, x.grad",
    "grad runs it not": "y = x.exp(); y.sum().backward(); lib.autograd.grad((y * 2).sum(), y)",
    "a comparison in place ends the history": "names = 'eq ne lt le gt ge not_equal less less_equal greater'; "
    "answers = [getattr(x * 2, name + '_')(4.0) for name in names.split()]; "
    "sum(y.sum() for y in answers).backward(); x.grad, answers, [y.grad_fn.name() for y in answers]",
    "so does one of two tensors": "y = f * 1; y.gt_(x - 1); y.sum().backward(); x.grad, y, y.grad_fn.name()",
    "and one of a part": "y = x * 2; y.view(3, 1)[1:].gt_(4); (y * x).sum().backward(); x.grad, y",
    "logic in place keeps it": "y = x * 2; y.logical_not_(); y.logical_or_(x); y.sum().backward(); x.grad, y",
    "products of scatter have no gradient": "x.scatter(0, lib.tensor([0, 0]), 2.0, reduce='multiply').sum().backward()",
    "nor have those in place": "y = x * 2; y.scatter_(0, lib.tensor([0]), 2.0, reduce='multiply'); y, y.grad_fn.name()",
    "an axis is added under no_grad": "y = x * 2; with lib.no_grad(): y.unsqueeze_(0); "
    "(x * y).sum().backward(); x.grad, y.grad_fn.name()",
    "no axis is removed under no_grad": "y = x * 2; with lib.no_grad(): y.squeeze_(); (y * y).sum().backward(); x.grad",
    "an axis is added to a view under no_grad": "y = X[0]; with lib.no_grad(): y.unsqueeze_(0); "
    "(y * X).sum().backward(); X.grad, y.requires_grad, y.is_leaf",
    "a matrix is transposed under no_grad": "y = X * 2; with lib.no_grad(): y.t_(); (y * y).sum().backward()",
    "a view that gets an axis keeps its hook": "y = (X * 1)[0]; y.register_hook(lambda g: g * 10); "
    "y.unsqueeze_(0); y.sum().backward(); X.grad",
    "and the gradient that it retains": "y = (X * 1)[0]; y.retain_grad(); y.unsqueeze_(0); "
    "(y * y).sum().backward(); y.grad, X.grad",
    "a view in another shape, made under no_grad": "with lib.no_grad(): y = X[0].unsqueeze_(0); y.requires_grad, y * 2",
    "a view of a view made under no_grad is changed": "with lib.no_grad(): y = X[0]; part = y[0]; row = y.view(-1); "
    "with lib.no_grad(): part.mul_(2), row.add_(1), part.fill_(4); X",
    "a view made under no_grad gets no gradient": "with lib.no_grad(): part = x[:]; "
    "lib.autograd.grad((x * part).sum(), [part, x], allow_unused=True)",
    "nor is it an input that one gets": "with lib.no_grad(): part = x[:]; "
    "(x * part).sum().backward(inputs=[part, x]); part.grad, x.grad",
    "nor does a pass start from it": "with lib.no_grad(): part = x[:]; part.backward(lib.ones(3))",
    "a product in place with a wider dtype": "z = d.requires_grad_(); y = x.clone(); y.mul_(z); y.div_(z); y.mul_(z); "
    "y.sum().backward(); x.grad, z.grad",
    "and of a part": "z = d.requires_grad_(); y = x.clone(); y[1:].mul_(z[1:]); y.sum().backward(); x.grad, z.grad",
    "copies are no views": "[y._is_view() for y in (X.masked_select(X > 0), X.roll(1), lib.diag(x), "
    "lib.diag_embed(X), X.sum_to_size(1, 3), X[:0].gather(0, lib.zeros(0, 3).long()), s.masked_select(s > 0), "
    "nn.RNN(3, 2, batch_first=True)(lib.ones(1, 2, 3))[0])]",
    "and are detached": "X.masked_select(X > 0).detach_(), X.roll(1).detach_(), lib.diag(x).detach_()",
    "a sum to the same size": "X.sum_to_size(2, 3) is X, X.sum_to_size(3)._is_view()",
    "a number for a mask along one axis": "m[:, lib.tensor([True, False, True])] = lib.tensor(2); "
    "m[..., [True, False, False]] = lib.tensor(4.0, dtype=lib.float64); m",
    "and for two masks": "m[m[:, 0] > 0, lib.tensor([True, False, False])] = lib.tensor(2); m",
    "a number whose data was replaced is transposed": "y = f[:1].reshape(()); y.data = y.data * 2; "
    "y.transpose_(0, -1), y._is_view(), y._version",
    "a transposed number is a view": "y = s * 1; y.transpose(0, 0).mul_(3); y.swapaxes(0, -1).mul_(2); y.backward(); "
    "s.grad, y",
}


@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND)
def test_the_same_as_in_pytorch(text: str) -> None:
    same(script(text, usual_names))
