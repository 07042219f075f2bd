"""What a student types into lesson 02, written from its text alone and in a style that none of the solutions has.

Every operation is a list of pairs (input, slope), made by a helper in a cell that the student adds; the order counts
the users of each node (Kahn); `backward` keeps the gradients that have arrived in a defaultdict.
"""

OWN_CELL = '''
from collections import defaultdict


def made(value, operation, *pairs):
    """A node from pairs (input, slope)."""
    sources, slopes = zip(*pairs)
    return MiniTensor(value, sources, operation, lambda g: tuple(g * s for s in slopes))
'''.strip()

ANSWERS: dict[str, list[str]] = {
    "add_and_multiply": [
        "return made(b.data + a.data, '+', (a, 1.0), (b, 1.0))",
        "return made(b.data * a.data, '*', (a, b.data), (b, a.data))",
    ],
    "subtract_and_divide": [
        "return a + b * -1.0",
        "return made(a.data / b.data, '/', (a, 1 / b.data), (b, -a.data / b.data / b.data))",
    ],
    "power": ["return made(pow(a.data, exponent), f'**{exponent}', (a, exponent * pow(a.data, exponent - 1)))"],
    "functions": [
        "return made(math.tanh(a.data), 'tanh', (a, math.cosh(a.data) ** -2))",
        "return made(math.exp(a.data), 'exp', (a, math.exp(a.data)))",
    ],
    "topological_order": [
        """
users, todo = defaultdict(int), [root]
while todo:
    node = todo.pop()
    for source in node.inputs:
        if source not in users:
            todo.append(source)
        users[source] += 1
order, ready = [], [root]
while ready:
    order.append(ready.pop())
    for source in order[-1].inputs:
        users[source] -= 1
        if users[source] == 0:
            ready.append(source)
return order
"""
    ],
    "backward": [
        """
arrived = defaultdict(float)
arrived[self] += gradient
for here in topological_order(self):
    here.grad = here.grad + arrived[here]
    shares = here.rule(arrived[here]) if here.rule else ()
    for number, share in enumerate(shares):
        arrived[here.inputs[number]] += share
"""
    ],
}

# The beginning of the right option of each question, in the order of the page.
CHOSEN = (
    "30",
    "The product gives each input its own value",
    "`d` will still send something",
    "The second contribution replaced the first",
    "8",
    "For all, since",
    "That of the branch that ran",
    "`y` is not a leaf",
)
