"""What the exercises of lesson 07 must do, case by case.

A case is a title (`# ...`), its steps (`>>> ...`), and what is right below each. The steps above the first title begin
every case of the exercise, with names of its own. For instructors, docs/authors.md says more, under "Cases".
"""

import threading

import numpy as np

from autograder.checks.cases import Check

# Exercise 1

check = Check("apply", points=4)
check.cases("""
>>> switches.recording, switches.inference = True, False
>>> x = MiniTensor([1.0, -2.0], requires_grad=True)

# recording off: the same numbers
>>> switches.recording = False
>>> y = x * 3
>>> switches.recording = True
>>> type(y).__name__
"MiniTensor"
>>> y.data
array([3.0, -6.0])

# recording off: no node, and the input stays as it is
>>> switches.recording = False
>>> y = (x * 3).tanh()
>>> switches.recording = True
>>> y.requires_grad, y.grad_fn
(False, None)
>>> x.requires_grad
True

# recording on: a node
>>> y = x.tanh()
>>> y.requires_grad, y.grad_fn.name()
(True, "TanhBackward0")
>>> y.data
np.tanh([1.0, -2.0])

# an input need not be a leaf
>>> x.tanh().tanh().requires_grad
True

# one input that requires grad is enough
>>> (MiniTensor([4.0]) * x).requires_grad, (x * MiniTensor([4.0])).requires_grad
(True, True)

# each input has an edge
>>> y = MiniTensor([4.0]) * x
>>> [None if node is None else node.name() for node, _ in y.grad_fn.next_functions]
[None, "AccumulateGrad"]

# no input requires grad
>>> y = MiniTensor([4.0, 5.0]) * 2
>>> type(y).__name__
"MiniTensor"
>>> y.requires_grad, y.grad_fn
(False, None)

# the class Switches has only what a thread begins with: a thread's own value decides
>>> Switches.recording = False
>>> y = x * 3
>>> Switches.recording = True
>>> y.requires_grad
True
""")
check.gradients(
    {"a * b + a": lambda a, b: a * b + a, "(a @ b).tanh()": lambda a, b: (a @ b).tanh()},
    [(3, 3), (3, 3)],
)
check.hidden("""
# an operation with an option
>>> MiniTensor([[1.0, 2.0]]).sum(dim=1).data
array([3.0])

# a computation on constants
>>> y = (MiniTensor([[4.0, 1.0]]) @ MiniTensor([[2.0], [1.0]])).tanh()
>>> y.is_leaf, y.requires_grad
(True, False)
""")
check.gradients({"(a * 2).sum(dim=1)": lambda a: (a * 2).sum(dim=1)}, [(2, 3)], hidden=True)

# Exercise 2


def in_a_second_block(mode):
    """The switch inside the second block with one object. What contextlib makes can be entered only once."""
    with mode:
        pass
    try:
        with mode:
            return is_grad_enabled()
    except Exception:
        return "it cannot be entered again"


def in_another_thread_meanwhile(function):
    """What a function returns if a second thread calls it."""
    answers = []
    other = threading.Thread(target=lambda: answers.append(function()))
    other.start()
    other.join()
    return answers[0]


check = Check("no_grad", points=4)
check.cases("""
>>> switches.recording, switches.inference = True, False

# inside no_grad, and after it
>>> with no_grad():
...     inside = is_grad_enabled()
>>> inside, is_grad_enabled()
(False, True)

# inside enable_grad, and after it
>>> with no_grad():
...     with enable_grad():
...         inside = is_grad_enabled()
...     after = is_grad_enabled()
>>> inside, after
(True, False)

# what is recorded
>>> x = MiniTensor(2.0, requires_grad=True)
>>> with no_grad():
...     outer = x * 3
...     with enable_grad():
...         inner = x * 3
>>> outer.requires_grad, inner.requires_grad, (x * 3).requires_grad
(False, True, True)

# no_grad inside no_grad: inside, between the two ends, and after both
>>> with no_grad():
...     with no_grad():
...         inside = is_grad_enabled()
...     between = is_grad_enabled()
>>> inside, between, is_grad_enabled()
(False, False, True)

# an object that was made earlier, while recording was on
>>> made_earlier = no_grad()
>>> with no_grad():
...     with made_earlier:
...         pass
...     between = is_grad_enabled()
>>> between, is_grad_enabled()
(False, True)

# a second block with the same object
>>> in_a_second_block(no_grad())
got in (False, "it cannot be entered again")

# an error in the block
>>> with no_grad():
...     raise KeyError("lost")
KeyError: 'lost'
>>> is_grad_enabled()
True

# another thread records meanwhile
>>> with no_grad():
...     there = in_another_thread_meanwhile(is_grad_enabled)
>>> there
True

# another thread enters a block meanwhile
>>> theirs = no_grad()
>>> with no_grad():
...     with enable_grad():
...         in_another_thread_meanwhile(theirs.__enter__)
...     after = is_grad_enabled()
>>> after, is_grad_enabled()
(False, True)
""")
check.hidden("""
# nested blocks and an error
>>> answers = []
>>> with no_grad():
...     with no_grad():
...         answers.append(is_grad_enabled())
...     answers.append(is_grad_enabled())
...     try:
...         with enable_grad():
...             with no_grad():
...                 answers.append(is_grad_enabled())
...             answers.append(is_grad_enabled())
...             raise ValueError
...     except ValueError:
...         answers.append(is_grad_enabled())
>>> answers, is_grad_enabled()
([False, False, False, True, False], True)

# enable_grad where recording is on
>>> with enable_grad():
...     pass
>>> is_grad_enabled()
True
""")

# Exercise 3


def scale(x, factor=3):
    """Scale a tensor."""
    return x * factor


def fail(x):
    raise KeyError(x)


def doubled(again, x, depth):
    """The tensor x, doubled once and once more for each call of itself."""
    return x * 2 if depth == 0 else again(again, x, depth - 1) * 2


def switch_around(again, depth):
    """The switch at the beginning and at the end of a function that calls itself."""
    before = is_grad_enabled()
    return [before, *(again(again, depth - 1) if depth else []), is_grad_enabled()]


check = Check("decorated", points=3)
check.cases("""
>>> switches.recording, switches.inference = True, False
>>> x = MiniTensor([1.0, 2.0], requires_grad=True)

# the result
>>> scaled = no_grad()(scale)
>>> result = scaled(x)
>>> type(result).__name__
"MiniTensor"
>>> result.data
array([3.0, 6.0])

# positional and named arguments
>>> scaled = no_grad()(scale)
>>> scaled(x, 4).data
array([4.0, 8.0])
>>> scaled(x, factor=5).data
array([5.0, 10.0])

# the name and the docstring
>>> scaled = no_grad()(scale)
>>> scaled.__name__ == "scale", scaled.__doc__
(True, "Scale a tensor.")

# the mode while the function runs
>>> asked = no_grad()(is_grad_enabled)
>>> asked()
False
>>> no_grad()(scale)(x).requires_grad
False

# the mode after decorating, and after a call
>>> scaled = no_grad()(scale)
>>> is_grad_enabled()
True
>>> result = scaled(x)
>>> is_grad_enabled(), (x * 2).requires_grad
(True, True)

# enable_grad inside no_grad: in a block, as a decorator, and after both
>>> recorded = enable_grad()(scale)
>>> with no_grad():
...     with enable_grad():
...         in_a_block = is_grad_enabled()
...     result, after = recorded(x), is_grad_enabled()
>>> in_a_block, result.requires_grad, after
(True, True, False)

# a function that calls itself: the result
>>> quiet = no_grad()(doubled)
>>> result = quiet(quiet, x, 1)
>>> result.data
array([4.0, 8.0])
>>> result.requires_grad
False

# a function that calls itself: the switch in both calls, and after them
>>> quiet = no_grad()(switch_around)
>>> quiet(quiet, 1)
[False, False, False, False]
>>> is_grad_enabled()
True

# a function that fails
>>> failing = no_grad()(fail)
>>> failing(1)
KeyError: 1
>>> is_grad_enabled()
True
""")
check.hidden("""
# a function that calls itself three times
>>> quiet = no_grad()(doubled)
>>> result = quiet(quiet, x, 3)
>>> result.data
array([16.0, 32.0])
>>> result.requires_grad, is_grad_enabled()
(False, True)

# enable_grad for a function that calls itself
>>> recorded = enable_grad()(doubled)
>>> with no_grad():
...     result, after = recorded(recorded, x, 1), is_grad_enabled()
>>> result.requires_grad, after
(True, False)
""")

# Exercise 4

check = Check("detach", points=3)
check.cases("""
>>> switches.recording, switches.inference = True, False
>>> x = MiniTensor([[1.0, -2.0, 3.0]], requires_grad=True)
>>> y = x * x

# the numbers and the shape
>>> d = y.detach()
>>> type(d).__name__
"MiniTensor"
>>> d.data
array([[1.0, 4.0, 9.0]])

# no history
>>> d = y.detach()
>>> d.requires_grad, d.grad_fn, x.detach().requires_grad
(False, None, False)

# the same memory
>>> np.shares_memory(y.detach().data, y.data), np.shares_memory(x.detach().data, x.data)
(True, True)

# a scalar, such as a loss
>>> y = MiniTensor(2.0, requires_grad=True) * 3
>>> d = y.detach()
>>> d.shape, d.item(), np.shares_memory(d.data, y.data)
((), 6.0, True)

# the original keeps its history
>>> d, e = y.detach(), x.detach()
>>> y.requires_grad, y.grad_fn.name(), x.requires_grad
(True, "MulBackward0", True)

# the original keeps its gradient, and the new leaf has none
>>> y.backward(np.array([[1.0, 10.0, 100.0]]))
>>> x.detach().grad
None
>>> x.grad.data
array([[2.0, -40.0, 600.0]])

# a factor that is detached is a constant: the gradient of d * x is d
>>> d = y.detach()
>>> (d * x).backward(np.array([[1.0, 10.0, 100.0]]))
>>> x.grad.data
array([[1.0, 40.0, 900.0]])

# what has no history gives a new tensor, too
>>> constant = MiniTensor([1.0, 2.0])
>>> constant.detach() is constant
False

# recording off
>>> switches.recording = False
>>> d, after = x.detach(), is_grad_enabled()
>>> switches.recording = True
>>> after, d.requires_grad, d is x, np.shares_memory(d.data, x.data)
(False, False, False, True)
""")
check.hidden("""
# beside the original in one product
>>> x = MiniTensor([2.0, 3.0], requires_grad=True)
>>> y = x * 2
>>> (y * y.detach()).backward(np.array([1.0, 10.0]))
>>> x.grad.data
array([8.0, 120.0])

# a scalar leaf
>>> s = MiniTensor(5.0, requires_grad=True)
>>> s.detach().shape, s.detach().item(), np.shares_memory(s.detach().data, s.data)
((), 5.0, True)

# inside no_grad
>>> with no_grad():
...     d = x.detach()
>>> d.requires_grad
False
""")

# Exercise 5


def scaled_again(x, factor, again=None):
    """The tensor x, scaled; a function that is passed as `again` does it in an inner call."""
    return x * factor if again is None else again(x, factor)


check = Check("inference_mode", points=5)
check.cases("""
>>> with inference_mode():
...     t, u = MiniTensor([1.0, 2.0]), MiniTensor([0.5, 1.0], requires_grad=True)
>>> switches.recording, switches.inference = True, False
>>> w = MiniTensor([3.0, 4.0], requires_grad=True)

# both switches (recording, marking) inside, and after
>>> with inference_mode():
...     inside = is_grad_enabled(), is_inference_mode_enabled()
>>> inside
(False, True)
>>> is_grad_enabled(), is_inference_mode_enabled()
(True, False)

# what is marked: made inside, and made outside of it
>>> t.is_inference(), (t + 1).is_inference()
(True, False)

# nothing is recorded inside, and w stays as it is
>>> with inference_mode():
...     inside = w * t
>>> inside.requires_grad, (w * 2).requires_grad
(False, True)

# nothing is recorded inside, not even by enable_grad
>>> with inference_mode():
...     with enable_grad():
...         inside = w + w
>>> inside.requires_grad
False

# inference_mode inside inference_mode: between the two ends, and after both
>>> with inference_mode():
...     with inference_mode():
...         pass
...     between = is_grad_enabled(), is_inference_mode_enabled()
>>> between
(False, True)
>>> is_grad_enabled(), is_inference_mode_enabled()
(True, False)

# an object that was made earlier, used inside inference_mode
>>> made_earlier = inference_mode()
>>> with inference_mode():
...     with made_earlier:
...         pass
...     between = is_grad_enabled(), is_inference_mode_enabled()
>>> between
(False, True)
>>> is_grad_enabled(), is_inference_mode_enabled()
(True, False)

# an object that was made earlier, used inside no_grad
>>> made_earlier = inference_mode()
>>> with no_grad():
...     with made_earlier:
...         pass
...     between = is_grad_enabled(), is_inference_mode_enabled()
>>> between, is_grad_enabled()
((False, False), True)

# inference_mode(False) alone: inside, and after
>>> with inference_mode(False): inside = is_grad_enabled(), is_inference_mode_enabled()
>>> inside, is_grad_enabled(), is_inference_mode_enabled()
((True, False), True, False)

# inference_mode(False) inside inference_mode: inside, and after
>>> with inference_mode():
...     with inference_mode(False):
...         inside = is_grad_enabled(), is_inference_mode_enabled()
...     after = is_grad_enabled(), is_inference_mode_enabled()
>>> inside, after
((True, False), (False, True))

# another thread enters a block meanwhile
>>> theirs = inference_mode()
>>> with inference_mode():
...     with inference_mode(False):
...         in_another_thread_meanwhile(theirs.__enter__)
...     after = is_grad_enabled(), is_inference_mode_enabled()
>>> after
(False, True)
>>> is_grad_enabled(), is_inference_mode_enabled()
(True, False)

# an error in the block
>>> with inference_mode():
...     raise KeyError("lost")
KeyError: 'lost'
>>> is_grad_enabled(), is_inference_mode_enabled()
(True, False)

# as a decorator
>>> evaluate = inference_mode()(scaled_again)
>>> result = evaluate(w, factor=2)
>>> type(result).__name__
"MiniTensor"
>>> result.is_inference(), is_grad_enabled(), is_inference_mode_enabled()
(True, True, False)

# as a decorator of a function that calls itself
>>> evaluate = inference_mode()(scaled_again)
>>> evaluate(w, 2, again=evaluate).is_inference()
True
>>> is_grad_enabled(), is_inference_mode_enabled()
(True, False)

# inference_mode(False) as a decorator
>>> recorded = inference_mode(False)(scaled_again)
>>> with inference_mode():
...     result = recorded(w, 2)
>>> result.requires_grad, result.is_inference()
(True, False)

# t + w saves nothing: it is recorded
>>> (t + w).requires_grad
True
>>> (t + w).backward(np.array([1.0, 10.0]))
>>> w.grad.data
array([1.0, 10.0])

# w * w saves only w, which is not marked
>>> (w * w).requires_grad
True

# t * w and w * t must save t
>>> t * w
RuntimeError: Inference tensors cannot be saved for backward. *instead of `torch.inference_mode()`.
>>> w * t
RuntimeError: Inference tensors cannot be saved for backward. *instead of `torch.inference_mode()`.

# u is marked, although it requires grad: u * w must save it
>>> u * w
RuntimeError: Inference tensors cannot be saved for backward. *instead of `torch.inference_mode()`.

# an operation that saves only its second input
>>> class SavesSecond(Function):
...     @staticmethod
...     def forward(ctx, a, b):
...         ctx.save_for_backward(b)
...         return a * b
>>> SavesSecond.apply(w, t)
RuntimeError: Inference tensors cannot be saved for backward. *instead of `torch.inference_mode()`.

# exp saves its output, which is not the marked array
>>> u.exp().requires_grad
True

# relu saves its output: equal numbers in another array
>>> u.relu().requires_grad
True

# what is computed outside is ordinary, and may be saved
>>> ((t + 1) * w).backward(np.array([1.0, 10.0]))
>>> w.grad.data
array([2.0, 30.0])
""")
check.hidden("""
# operations that must save t
>>> w * t
RuntimeError
>>> w / t
RuntimeError
>>> t @ w
RuntimeError

# where nothing is recorded, nothing is refused
>>> (t * 2).requires_grad
False
>>> with no_grad():
...     product = t * w
>>> product.data
array([3.0, 8.0])

# what is computed outside is ordinary
>>> ordinary = t + 0
>>> (ordinary * w).backward(np.array([1.0, 10.0]))
>>> w.grad.data
array([1.0, 20.0])

# more nested blocks
>>> with inference_mode():
...     with inference_mode(False):
...         inside = (w * 2).requires_grad, MiniTensor(1.0).is_inference()
...     with enable_grad():
...         forced = (w * t).requires_grad
>>> inside, forced
((True, False), False)

# a function that calls itself twice
>>> quiet = inference_mode()(doubled)
>>> quiet(quiet, w, 2).data
array([24.0, 32.0])
>>> is_grad_enabled(), is_inference_mode_enabled()
(True, False)
""")

# Exercise 6


def networks(seed, rows, features):
    """The weights of a linear generator and of a linear discriminator, real samples, and noise."""
    draw = np.random.default_rng(seed).normal
    return draw(size=(2, features)), draw(size=(features, 1)), draw(size=(rows, features)), draw(size=(rows + 2, 2))


def losses_and_gradients(weights, other_weights, real, noise):
    """The loss of the discriminator, and its gradient; the loss of the generator, and its gradient."""
    g, d = MiniTensor(weights, requires_grad=True), MiniTensor(other_weights, requires_grad=True)
    both = (lambda z: z @ g), (lambda x: x @ d)
    first = discriminator_loss(*both, MiniTensor(real), MiniTensor(noise))
    first.backward()
    found = first.item(), d.grad.data, g.grad is None
    second = generator_loss(*both, MiniTensor(noise))
    second.backward()
    return *found, second.item(), g.grad.data


def on_paper(weights, other_weights, real, noise):
    """What losses_and_gradients must return, computed with NumPy."""
    made = noise @ weights
    of_real, of_made = real @ other_weights, made @ other_weights
    gradient = 2 * real.T @ (of_real - 1) / len(real) + 2 * made.T @ of_made / len(made)
    other_gradient = 2 * noise.T @ (of_made - 1) @ other_weights.T / len(made)
    loss = ((of_real - 1) ** 2).mean() + (of_made**2).mean()
    return float(loss), gradient, True, float(((of_made - 1) ** 2).mean()), other_gradient


check = Check("gan_losses", points=4)
check.cases("""
>>> switches.recording, switches.inference = True, False
>>> g, d = MiniTensor([[2.0]], requires_grad=True), MiniTensor([[0.5]], requires_grad=True)
>>> generator, discriminator = (lambda z: z @ g), (lambda x: x @ d)
>>> real, noise = MiniTensor([[1.0], [4.0]]), MiniTensor([[1.0], [0.0], [-2.0]])

# the loss of the discriminator: the scores are 0.5 and 2 for real samples, and 1, 0 and -2 for generated ones
>>> loss = discriminator_loss(generator, discriminator, real, noise)
>>> type(loss).__name__
"MiniTensor"
>>> loss.data
array(0.625 + 5 / 3)

# its gradient: 3.5 through the real samples, and 20/3 through the generated ones
>>> discriminator_loss(generator, discriminator, real, noise).backward()
>>> d.grad.data
array([[3.5 + 20 / 3]])

# it does not reach the generator
>>> discriminator_loss(generator, discriminator, real, noise).backward()
>>> None if g.grad is None else g.grad.data
None

# the loss of the generator: the scores are 1, 0 and -2
>>> loss = generator_loss(generator, discriminator, noise)
>>> type(loss).__name__
"MiniTensor"
>>> loss.data
array(10 / 3)

# its gradient reaches the generator
>>> generator_loss(generator, discriminator, noise).backward()
>>> None if g.grad is None else g.grad.data
array([[2.0]])
""")
check.hidden("""
# networks with more inputs
>>> losses_and_gradients(*networks(1, 4, 3))
on_paper(*networks(1, 4, 3))

# one real sample
>>> losses_and_gradients(*networks(2, 1, 1))
on_paper(*networks(2, 1, 1))

# the switch after it
>>> loss = discriminator_loss(generator, discriminator, real, noise)
>>> loss = generator_loss(generator, discriminator, noise)
>>> is_grad_enabled()
True
""")
