# %% tags=["style:compact"] exercise="held"
def held(node):
    arrays = [array for node in topological_order(node) if node.saved for array in node.saved]
    first = [array for i, array in enumerate(arrays) if not any(array is other for other in arrays[:i])]
    return len(topological_order(node)), sum(8 * array.size for array in first)

# %% tags=["style:compact"] exercise="release"
def release(self):
    self.saved = self.saved and None


def saved_tensors(self):
    if self.saved is not None:
        return self.saved
    raise RuntimeError(SECOND_BACKWARD)


Function.release, Function.saved_tensors = release, property(saved_tensors)

# %% tags=["style:compact"] exercise="backward"
backward_of_lesson_05 = MiniTensor.backward


def backward(self, gradient=None, retain_graph=False):
    """The loop of lesson 05 as it is; each rule is called through a node that lets go afterward."""
    order = topological_order(edge_to(self)[0])
    kinds = {type(node) for node in order if not isinstance(node, AccumulateGrad)}
    rules = {kind: kind.__dict__["backward"] for kind in kinds}

    def letting_go(rule):
        def run(node, grad):
            shares = rule.__func__(node, grad)
            node.release()
            return shares

        return staticmethod(run)

    try:
        for kind in kinds if not retain_graph else ():
            kind.backward = letting_go(rules[kind])
        backward_of_lesson_05(self, gradient)
    finally:
        for kind in kinds:
            kind.backward = rules[kind]


MiniTensor.backward = backward

# %% tags=["style:compact"] exercise="backward_each"
def backward_each(losses):
    for loss in losses:
        loss.backward(retain_graph=loss is not losses[-1])

# %% tags=["style:compact"] exercise="run_sequence"
def run_sequence(w, inputs, targets):
    numbers, history = np.zeros_like(targets[0]), []
    for x, target in zip(inputs, targets):
        state = (x + numbers @ w).tanh()
        numbers, loss = state.data.copy(), ((target - state) ** 2).mean()
        loss.backward()
        history += [float(loss.data)]
    return history, MiniTensor(numbers)

# %% tags=["style:torch"] exercise="held"
def held(node):
    total, counted, seen, waiting = 0, set(), {node}, [node]
    while waiting:
        node = waiting.pop()
        for array in node.saved if node.saved is not None else []:
            if id(array) not in counted:
                counted.add(id(array))
                total += array.nbytes
        for source, _ in node.next_functions:
            if source is not None and source not in seen:
                seen.add(source)
                waiting.append(source)
    return len(seen), total

# %% tags=["style:torch"] exercise="release"
class Saved:
    def __get__(self, node, kind=None):
        if node.saved is None:
            raise RuntimeError(SECOND_BACKWARD)
        return node.saved


def release(self):
    if len(self.saved or ()) > 0:
        self.saved = None


def saved_tensors(self):
    return Saved().__get__(self)


Function.release = release
Function.saved_tensors = Saved()

# %% tags=["style:torch"] exercise="backward"
def backward(self, gradient=None, retain_graph=False):
    if not self.requires_grad:
        raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
    if gradient is None:
        if self.data.size != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        gradient = np.ones(self.shape)
    waiting = topological_order(edge_to(self)[0])[::-1]
    pending = {waiting[-1]: as_tensor(gradient).data}
    while waiting:
        node = waiting.pop()
        if node not in pending:
            continue
        grad = pending.pop(node)
        if isinstance(node, AccumulateGrad):
            node.accumulate(grad)
            continue
        if node.retaining is not None and node.retaining() is not None:
            tensor = node.retaining()
            tensor.grad = MiniTensor(grad.copy() if tensor.grad is None else tensor.grad.data + grad)
        shares = node.backward(node, grad)
        for (source, _), share, shape in zip(node.next_functions, shares if isinstance(shares, tuple) else (shares,), node.input_shapes):
            if source is not None and share is not None:
                pending[source] = pending.get(source, 0.0) + sum_to(share, shape)
        if retain_graph:
            continue
        node.release()


MiniTensor.backward = backward

# %% tags=["style:torch"] exercise="backward_each"
def backward_each(losses):
    if not losses:
        return
    *first, last = losses
    for loss in first:
        loss.backward(retain_graph=True)
    last.backward()

# %% tags=["style:torch"] exercise="run_sequence"
def run_sequence(w, inputs, targets):
    def step(numbers, x, target):
        state = (MiniTensor(numbers) @ w + MiniTensor(x)).tanh()
        difference = state - MiniTensor(target)
        loss = (difference * difference).sum() / float(target.size)
        loss.backward()
        return state.data, loss.item()

    numbers, history = np.zeros(np.shape(inputs[0])), []
    for i in range(len(inputs)):
        numbers, value = step(numbers, inputs[i], targets[i])
        history.append(value)
    return history, MiniTensor(numbers)

# %% tags=["style:plain"] exercise="held"
def held(node):
    nodes, arrays = topological_order(node), []
    for node in nodes:
        if node.saved is not None:
            arrays.extend(node.saved)
    _, first = np.unique([id(array) for array in arrays], return_index=True)
    return len(nodes), sum(arrays[i].nbytes for i in first)

# %% tags=["style:plain"] exercise="release"
def release(self):
    if self.saved != ():
        self.saved = None


def saved_tensors(self):
    try:
        return tuple(self.saved)
    except TypeError:  # None is no tuple
        raise RuntimeError(SECOND_BACKWARD) from None


Function.release = release
Function.saved_tensors = property(saved_tensors)

# %% tags=["style:plain"] exercise="backward"
from collections import defaultdict


def run_rule(node, grad, keep):
    """The pairs of node and array that the rule sends on; afterward the node lets go of what it saved."""
    shares = node.backward(node, grad)
    if not keep:
        node.release()
    shares = shares if isinstance(shares, tuple) else (shares,)
    steps = zip(node.next_functions, shares, node.input_shapes)
    return [(source, sum_to(share, shape)) for (source, _), share, shape in steps if source and share is not None]


def backward(self, gradient=None, retain_graph=False):
    if not self.requires_grad:
        raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
    if gradient is None and self.data.size != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    root, _ = edge_to(self)
    arrived = defaultdict(list)
    arrived[root].append(np.ones(self.shape) if gradient is None else as_tensor(gradient).data)
    for node in topological_order(root):
        if node not in arrived:
            continue
        grad = sum(arrived.pop(node))
        keep_if_asked(node, grad)
        if isinstance(node, AccumulateGrad):
            node.accumulate(grad)
        else:
            for source, share in run_rule(node, grad, retain_graph):
                arrived[source].append(share)


MiniTensor.backward = backward

# %% tags=["style:plain"] exercise="backward_each"
from itertools import zip_longest


def backward_each(losses):
    for loss, following in zip_longest(losses, losses[1:]):
        backward(loss, retain_graph=following is not None)

# %% tags=["style:plain"] exercise="run_sequence"
def run_sequence(w, inputs, targets):
    def steps():
        numbers = np.zeros(np.shape(targets[0]))
        for x, target in zip(inputs, targets):
            state = (MiniTensor(numbers) @ w + x).tanh()
            error = state - target
            loss = (error * error).mean()
            backward(loss)
            numbers = np.copy(state.data)
            yield loss.item(), numbers

    history, states = zip(*steps())
    return list(history), MiniTensor(states[-1])
