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
}


@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND)
def test_the_same_as_in_pytorch(text: str) -> None:
    same(script(text, usual_names))
