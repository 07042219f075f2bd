# %% tags=["style:compact"] exercise="small_evidence"
breaks_overwriting = lambda a: a * a
breaks_pushing_again = lambda a: (lambda b: b * b)(a.exp())

# %% tags=["style:compact"] exercise="late_evidence"
breaks_nearest_first = lambda a: (lambda b: b * b.tanh())(a * a)

# %% tags=["style:compact"] exercise="valid_order"
def is_topological(order):
    behind = [order[number + 1 :] for number in range(len(order))]
    return all(node not in rest and set(node.inputs) <= set(rest) for node, rest in zip(order, behind))

# %% tags=["style:compact"] exercise="contributions"
def contributions(expression, number, uses):
    expression(leaves := list(map(MiniTensor, [number] * uses))).backward()
    return [leaf.grad for leaf in leaves]

# %% tags=["style:compact"] exercise="longest_chain"
import bisect


def longest_chain(backward, most):
    def fails(count):
        try:
            backward(negations(count)[1])
        except RecursionError:
            return True
        return False

    return bisect.bisect_left(range(1, most + 1), True, key=fails)

# %% tags=["style:compact"] exercise="iterative_order"
def topological_order(root):
    uses, found = {root: 0}, [root]
    for node in found:
        for source in node.inputs:
            if source not in uses:
                found.append(source)
            uses[source] = uses.get(source, 0) + 1
    order = [root]
    for node in order:
        for source in node.inputs:
            uses[source] -= 1
            if uses[source] == 0:
                order.append(source)
    return order


def backward(self, gradient=1.0):
    arrived = dict.fromkeys(topological_order(self), 0.0)
    arrived[self] = gradient
    for node in arrived:
        node.grad = node.grad + arrived[node]
        for source, share in zip(node.inputs, node.rule(arrived[node]) if node.rule else ()):
            arrived[source] += share


MiniTensor.backward = backward

# %% tags=["style:loops"] exercise="small_evidence"
def breaks_overwriting(a):
    return a - a


def breaks_pushing_again(a):
    for _ in range(2):
        a = a + a
    return a

# %% tags=["style:loops"] exercise="late_evidence"
def breaks_nearest_first(a):
    numbers = [a]
    for _ in range(2):
        numbers.append(numbers[-1].exp())
    return numbers[1] - numbers[2]

# %% tags=["style:loops"] exercise="valid_order"
def is_topological(order):
    passed = set()
    for node in reversed(order):
        if node in passed:
            return False
        for source in node.inputs:
            if source not in passed:
                return False
        passed.add(node)
    return True

# %% tags=["style:loops"] exercise="contributions"
def contributions(expression, number, uses):
    found = []
    for use in range(uses):
        leaves = []
        for _ in range(uses):
            leaves.append(MiniTensor(number))
        expression(leaves).backward()
        found.append(leaves[use].grad)
    return found

# %% tags=["style:loops"] exercise="longest_chain"
def longest_chain(backward, most):
    for count in range(1, most + 1):
        x, y = negations(count)
        try:
            backward(y)
        except RecursionError:
            return count - 1
    return most

# %% tags=["style:loops"] exercise="iterative_order"
def topological_order(root):
    order = []
    entered = {root}
    path = [(root, iter(root.inputs))]
    while path:
        node, remaining = path[-1]
        for source in remaining:
            if source not in entered:
                entered.add(source)
                path.append((source, iter(source.inputs)))
                break
        else:
            path.pop()
            order.append(node)
    order.reverse()
    return order


def backward(self, gradient=1.0):
    arrived = dict.fromkeys(topological_order(self), 0.0)
    arrived[self] = gradient
    for node in arrived:
        node.grad = node.grad + arrived[node]
        for source, share in zip(node.inputs, node.rule(arrived[node]) if node.rule else ()):
            arrived[source] += share


MiniTensor.backward = backward

# %% tags=["style:plain"] exercise="small_evidence"
def breaks_overwriting(a):
    return a / a


def breaks_pushing_again(a):
    square = a**2
    return square - square

# %% tags=["style:plain"] exercise="late_evidence"
def breaks_nearest_first(a):
    e = a.exp()
    total = e + 1.0
    return e / total

# %% tags=["style:plain"] exercise="valid_order"
def is_topological(order):
    if len(set(order)) < len(order):
        return False
    try:
        return all(order.index(node) < order.index(source) for node in order for source in node.inputs)
    except ValueError:  # an input that is not in the list
        return False

# %% tags=["style:plain"] exercise="contributions"
def contributions(expression, number, uses):
    weight = MiniTensor(number)
    each_use = [weight + 0.0 for _ in range(uses)]
    expression(each_use).backward()
    return [use.grad for use in each_use]

# %% tags=["style:plain"] exercise="longest_chain"
def longest_chain(backward, most):
    """Double the length until it fails, then add ever smaller steps."""

    def survives(count):
        last = negations(count)[-1]
        try:
            backward(last)
            return True
        except RecursionError:
            return False

    step = 1
    while 2 * step <= most and survives(2 * step):
        step *= 2
    longest = 0
    while step >= 1:
        if longest + step <= most and survives(longest + step):
            longest += step
        step //= 2
    return longest

# %% tags=["style:plain"] exercise="iterative_order"
from collections import defaultdict, deque


def topological_order(root):
    order, state, path = deque(), {}, [root]
    while path:
        node = path[-1]
        if node not in state:
            state[node] = "open"
            path.extend(source for source in node.inputs if source not in state)
        else:
            path.pop()
            if state[node] == "open":
                state[node] = "done"
                order.appendleft(node)
    return list(order)


def backward(self, gradient=1.0):
    arrived = defaultdict(list)
    arrived[self].append(gradient)
    for node in topological_order(self):
        total = sum(arrived[node])
        node.grad += total
        for source, share in zip(node.inputs, node.rule(total) if node.rule else ()):
            arrived[source].append(share)


MiniTensor.backward = backward
