# %% tags=["style:compact"] exercise="saved_bytes"
def saved_bytes(output):
    nodes = topological_order(output.grad_fn) if output.grad_fn else []
    leaves = [owner(node.variable.data) for node in nodes if hasattr(node, "variable")]
    totals = [0, 0]
    counted = []
    for array in map(owner, sum(map(arrays_kept_by, nodes), [])):
        if not any(array is other for other in counted):
            counted.append(array)
            totals[any(array is leaf for leaf in leaves)] += array.nbytes
    return tuple(totals)

# %% tags=["style:compact"] exercise="checkpoint"
def collecting(function, inputs):
    found = []
    with enable_grad(), saved_tensors_hooks(lambda array: found.append(array) or array, np.asarray):
        function(*inputs)
    return found


def checkpoint(function, *inputs):
    first, second, stamps = [], [], versions(inputs)

    def unpack(number):
        if not second or second[number] is None:
            if any(now > then for now, then in zip(versions(inputs), stamps)):
                raise RuntimeError(CHANGED_INPUT)
            arrays = collecting(function, inputs)
            if list(map(np.shape, arrays)) != first:
                raise RuntimeError(OTHER_RUN)
            second[:] = arrays
        array, second[number] = second[number], None
        return array

    with saved_tensors_hooks(lambda array: first.append(np.shape(array)) or len(first) - 1, unpack):
        return function(*inputs)

# %% tags=["style:compact"] exercise="in_segments"
import functools


def in_segments(layers, x, cuts):
    if not cuts:
        return functools.reduce(lambda x, layer: layer(x), layers, x)
    last = cuts[-1]
    x = in_segments_kept(layers[:last], x, list(cuts[:-1]))
    return functools.reduce(lambda x, layer: layer(x), layers[last:], x)


def in_segments_kept(layers, x, cuts):
    if cuts:
        x = in_segments_kept(layers[: cuts[-1]], x, cuts[:-1])
        layers = layers[cuts[-1] :]
    return checkpoint(lambda x: functools.reduce(lambda x, layer: layer(x), layers, x), x)

# %% tags=["style:compact"] exercise="best_cuts"
def peak_bytes(saved, outputs, cuts):
    kept, largest, running = 0, 0, 0
    for place, size in enumerate(saved):
        if place in cuts:
            kept, running = kept + outputs[place - 1], 0
        running += size
        largest = max(largest, running)
    return kept + largest


def best_cuts(saved, outputs):
    """For each bound of a segment, the cheapest cuts that respect it; then the best of the bounds."""
    count, found = len(saved), {}
    for bound in {sum(saved[i:j]) for i in range(count) for j in range(i + 1, count + 1)}:
        cheapest = {0: (0, ())}
        for end in range(1, count + 1):
            ways = []
            for start in range(end):
                if start in cheapest and sum(saved[start:end]) <= bound:
                    kept, cuts = cheapest[start]
                    ways.append((kept + (outputs[start - 1] if start else 0), cuts + ((start,) if start else ())))
            if ways:
                cheapest[end] = min(ways)
        if count in cheapest:
            cuts = cheapest[count][1]
            found[peak_bytes(saved, outputs, cuts)] = cuts
    return found[min(found)]

# %% tags=["style:compact"] exercise="repeatable"
import contextlib
import copy


@contextlib.contextmanager
def standing(generator, state):
    now, generator.bit_generator.state = copy.deepcopy(generator.bit_generator.state), state
    try:
        yield
    finally:
        generator.bit_generator.state = now


def repeatable(function, generators):
    states = None

    def call(*arguments):
        nonlocal states
        if states is None:
            states = [copy.deepcopy(g.bit_generator.state) for g in generators]
            return function(*arguments)
        with contextlib.ExitStack() as stack:
            for generator, state in zip(generators, states):
                stack.enter_context(standing(generator, state))
            return function(*arguments)

    return call

# %% tags=["style:composed"] exercise="saved_bytes"
def saved_bytes(output):
    seen, waiting, memory, leaves = set(), [output.grad_fn], {}, {}
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        waiting.extend(source for source, _ in node.next_functions)
        if isinstance(node, AccumulateGrad):
            leaves[id(owner(node.variable.data))] = node
            continue
        try:
            for array in node.saved_tensors:
                if array is not None:
                    memory[id(owner(array))] = owner(array)
        except RuntimeError:
            pass
    of_leaves = sum(array.nbytes for key, array in memory.items() if key in leaves)
    return sum(array.nbytes for array in memory.values()) - of_leaves, of_leaves

# %% tags=["style:composed"] exercise="checkpoint"
class Place:
    """Stands where a saved array was. All places of one call share the call."""

    def __init__(self, call, array):
        self.call, self.shape, self.array = call, array.shape, None
        call.places.append(self)

    def fill(self):
        if self.array is None:
            self.call.run_again()
        array, self.array = self.array, None
        return array


class Call:
    def __init__(self, function, inputs):
        self.function, self.inputs, self.places = function, inputs, []
        self.versions = versions(inputs)

    def run(self):
        with saved_tensors_hooks(lambda array: Place(self, array), Place.fill):
            return self.function(*self.inputs)

    def run_again(self):
        if self.versions != versions(self.inputs):
            raise RuntimeError(CHANGED_INPUT)
        found, waiting = [], list(self.places)

        def put(array):
            if not waiting or waiting.pop(0).shape != array.shape:
                raise RuntimeError(OTHER_RUN)
            found.append(array)
            return array

        with enable_grad(), saved_tensors_hooks(put, lambda array: array):
            self.function(*self.inputs)
        if waiting:
            raise RuntimeError(OTHER_RUN)
        for place, array in zip(self.places, found):
            place.array = array


def checkpoint(function, *inputs):
    return Call(function, inputs).run()

# %% tags=["style:composed"] exercise="in_segments"
def run(x, part):
    for layer in part:
        x = layer(x)
    return x


def in_segments(layers, x, cuts):
    done = 0
    for cut in cuts:
        x = checkpoint(run, x, layers[done:cut])  # the layers are an input, so nothing is looked up later
        done = cut
    return run(x, layers[done:])

# %% tags=["style:composed"] exercise="best_cuts"
def peak_bytes(saved, outputs, cuts):
    def largest(start, cuts):
        if not cuts:
            return sum(saved[start:])
        return max(sum(saved[start : cuts[0]]), largest(cuts[0], cuts[1:]))

    return largest(0, tuple(cuts)) + sum(outputs[cut - 1] for cut in cuts)


def all_cuts(first, count):
    """Every choice of cuts before the layers first to count - 1."""
    if first >= count:
        yield ()
        return
    for rest in all_cuts(first + 1, count):
        yield rest
        yield (first, *rest)


def best_cuts(saved, outputs):
    plans = [(peak_bytes(saved, outputs, cuts), len(cuts), cuts) for cuts in all_cuts(1, len(saved))]
    return min(plans)[-1]

# %% tags=["style:composed"] exercise="repeatable"
import pickle


def repeatable(function, generators):
    def snapshot():
        return pickle.dumps([generator.bit_generator.state for generator in generators])

    def go_back_to(kept):
        for generator, state in zip(generators, pickle.loads(kept)):
            generator.bit_generator.state = state

    def first_call(*arguments):
        kept = snapshot()
        calls[0] = lambda *arguments: again(kept, arguments)
        return function(*arguments)

    def again(kept, arguments):
        now = snapshot()
        go_back_to(kept)
        try:
            return function(*arguments)
        finally:
            go_back_to(now)

    calls = [first_call]
    return lambda *arguments: calls[0](*arguments)

# %% tags=["style:plain"] exercise="saved_bytes"
def saved_bytes(output):
    if output.grad_fn is None:
        return (0, 0)
    nodes = topological_order(output.grad_fn)
    memory = {}
    for node in nodes:
        for array in arrays_kept_by(node):
            memory[id(owner(array))] = owner(array).nbytes
    of_parameters = 0
    for node in nodes:
        if isinstance(node, AccumulateGrad):
            of_parameters += memory.pop(id(owner(node.variable.data)), 0)
    return sum(memory.values()), of_parameters

# %% tags=["style:plain"] exercise="checkpoint"
def checkpoint(function, *inputs):
    tickets, shape_of, array_for = [], {}, {}
    before = versions(inputs)

    def hand_in(array):
        ticket = object()
        tickets.append(ticket)
        shape_of[ticket] = array.shape
        return ticket

    def hand_out(ticket):
        if ticket not in array_for:
            if versions(inputs) != before:
                raise RuntimeError(CHANGED_INPUT)
            found = arrays_saved_in(function, inputs)
            if len(found) != len(tickets):
                raise RuntimeError(OTHER_RUN)
            for each, array in zip(tickets, found):
                if array.shape != shape_of[each]:
                    raise RuntimeError(OTHER_RUN)
            array_for.update(zip(tickets, found))
        return array_for.pop(ticket)

    with saved_tensors_hooks(hand_in, hand_out):
        return function(*inputs)

# %% tags=["style:plain"] exercise="in_segments"
def one_after_the_other(part):
    def run(x):
        for layer in part:
            x = layer(x)
        return x

    return run


def in_segments(layers, x, cuts):
    segment = []
    for number, layer in enumerate(layers):
        if number in cuts:
            x = checkpoint(one_after_the_other(segment), x)
            segment = []
        segment.append(layer)
    return one_after_the_other(segment)(x)

# %% tags=["style:plain"] exercise="best_cuts"
def peak_bytes(saved, outputs, cuts):
    segments = np.add.reduceat(saved, [0, *cuts])
    kept = np.take(outputs, np.array(cuts, dtype=int) - 1).sum()
    return int(kept + segments.max())


def best_cuts(saved, outputs):
    best = ()
    for number in range(2 ** (len(saved) - 1)):  # bit k of the number: is there a cut before layer k + 1?
        cuts = tuple(place for place in range(1, len(saved)) if number >> (place - 1) & 1)
        if peak_bytes(saved, outputs, cuts) < peak_bytes(saved, outputs, best):
            best = cuts
    return best

# %% tags=["style:plain"] exercise="repeatable"
class Repeatable:
    def __init__(self, function, generators):
        self.function, self.generators = function, generators
        self.first = None

    def states(self):
        return [generator.bit_generator.state for generator in self.generators]

    def restore(self, states):
        for i in range(len(states)):
            self.generators[i].bit_generator.state = states[i]

    def __call__(self, *arguments, **named):
        before = self.states()
        if self.first is None:
            self.first = before
            return self.function(*arguments, **named)
        self.restore(self.first)
        try:
            return self.function(*arguments, **named)
        finally:
            self.restore(before)


def repeatable(function, generators):
    return Repeatable(function, generators)
