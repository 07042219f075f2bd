# %% tags=["style:compact"] exercise="versions"
def note_for(saved, inputs, output):
    named = {**dict(enumerate(inputs)), "output": output}
    same = [source for source, tensor in named.items() if tensor.data is saved]
    near = [
        t for t in named.values() if hasattr(saved, "dtype") and np.may_share_memory(t.data, saved)
    ]
    if not same and not near:
        return None
    tensor = named[same[0]] if same else near[0]
    return Note(same[0] if same else None, tensor._counter, tensor._counter.value)


def saved_tensors(self):
    if self.saved is None:
        raise RuntimeError(SECOND_BACKWARD)
    moved = (i for i, note in enumerate(self.notes) if note and note.counter.value > note.version)
    for position in moved:
        raise modified(self, position)
    return self.saved


Function.saved_tensors = property(saved_tensors)

# %% tags=["style:compact"] exercise="change"
def change(self, operation):
    check_writable(self)
    past = as_tensor(np.array(self.data))
    vars(past).update(requires_grad=self.requires_grad, grad_fn=self.grad_fn)
    new = operation(past)
    mine, found = list(self.shape), list(new.shape)
    if mine != found:
        raise RuntimeError(f"output with shape {mine} doesn't match the broadcast shape {found}")
    new.requires_grad and take_over(self, new)
    np.copyto(self.data, new.data)
    self._counter.value += 1
    return self


for name, operation in {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "copy": lambda a, b: Copy.apply(a, b),
}.items():

    def method(self, other, operation=operation):
        return change(self, lambda former: operation(former, other))

    setattr(MiniTensor, f"{name}_", method)
    setattr(MiniTensor, f"__i{name}__", method)
MiniTensor.zero_ = lambda self: self.copy_(0.0)

# %% tags=["style:compact"] exercise="view"
def view(self, recipe):
    output = recipe(self)
    if output.data.size and np.shares_memory(output.data, self.data):
        vars(output).update(_counter=self._counter, _base=self._base or self)
        remember(self, output, recipe)
    return output


def detach(self):
    twin = as_tensor(self.data[...])
    twin._counter = self._counter
    return twin


MiniTensor.detach = detach
MiniTensor.reshape = lambda self, *shape: view(
    self, lambda a: Reshape.apply(a, shape=shape[0] if isinstance(shape[0], tuple) else shape)
)
MiniTensor.transpose = lambda self, i, j: view(self, lambda a: Transpose.apply(a, dim0=i, dim1=j))
MiniTensor.__getitem__ = lambda self, index: view(self, lambda a: Index.apply(a, index=index))

# %% tags=["style:compact"] exercise="copy_slices"
class CopySlices(Function):
    @staticmethod
    def forward(ctx, base, part, positions):
        flat = base.ravel().copy()
        flat[positions] = part
        source = np.full(base.size, -1)
        source[positions] = np.arange(positions.size).reshape(positions.shape)
        ctx.source, ctx.shape = source.reshape(base.shape), positions.shape
        return flat.reshape(base.shape)

    @staticmethod
    def backward(ctx, grad):
        kept = ctx.source < 0
        part = np.zeros(ctx.shape)
        part.put(ctx.source[~kept], grad[~kept])
        return np.where(kept, grad, 0.0), part

    name = classmethod(lambda cls: "CopySlices")

# %% tags=["style:compact"] exercise="fingerprints"
def fingerprints(output):
    nodes = topological_order(output.grad_fn) if output.grad_fn else []
    saved = [(node, i, array) for node in nodes for i, array in enumerate(node.saved or ())]
    return {
        (node, i): array.copy()
        for node, i, array in saved
        if hasattr(array, "dtype") and hasattr(array, "copy")
    }


def stands_still(note):
    return note is None or note.counter.value == note.version


def silent_changes(before):
    return [
        node.name()
        for (node, i), copy in before.items()
        if node.saved
        and stands_still(node.notes[i])
        and not np.array_equal(node.saved[i], copy, equal_nan=True)
    ]

# %% tags=["style:composed"] exercise="versions"
def note_for(saved, inputs, output):
    tensors, names = [*inputs, output], [*range(len(inputs)), "output"]
    if not isinstance(saved, np.ndarray):
        return None
    places = [tensor.data is saved for tensor in tensors]
    if True in places:
        place = places.index(True)
        return Note(names[place], tensors[place]._counter, tensors[place]._counter.value)
    for tensor in tensors:
        if np.shares_memory(tensor.data, saved):
            return Note(None, tensor._counter, tensor._counter.value)


class Guarded:
    """A descriptor in place of a property."""

    def __get__(self, node, kind=None):
        if node.saved is None:
            raise RuntimeError(SECOND_BACKWARD)
        now = [None if note is None else note.counter.value for note in node.notes]
        then = [None if note is None else note.version for note in node.notes]
        if now != then:
            raise modified(
                node, next(i for i, pair in enumerate(zip(now, then)) if pair[0] != pair[1])
            )
        return node.saved


Function.saved_tensors = Guarded()

# %% tags=["style:composed"] exercise="change"
class Changing:
    """Holds a tensor and its former value until the change is allowed."""

    def __init__(self, tensor):
        self.tensor, self.former = tensor, MiniTensor(tensor.data.copy())
        self.former.grad_fn, self.former.requires_grad = tensor.grad_fn, tensor.requires_grad

    def finish(self, new):
        shape = self.tensor.data.shape
        if new.data.shape != shape:
            text = f"output with shape {[*shape]} doesn't match the broadcast shape {[*new.shape]}"
            raise RuntimeError(text)
        if new.grad_fn is not None:
            take_over(self.tensor, new)
        self.tensor.data.flat = new.data.flat
        self.tensor._counter.value = self.tensor._counter.value + 1
        return self.tensor


def change(self, operation):
    check_writable(self)
    changing = Changing(self)
    return changing.finish(operation(changing.former))


MiniTensor.add_ = lambda self, other: change(self, lambda former: former + other)
MiniTensor.sub_ = lambda self, other: change(self, lambda former: former - other)
MiniTensor.mul_ = lambda self, other: change(self, lambda former: former * other)
MiniTensor.copy_ = lambda self, other: change(self, lambda former: Copy.apply(former, other))
MiniTensor.zero_ = lambda self: self.copy_(0.0)
MiniTensor.__iadd__ = lambda self, other: self.add_(other)
MiniTensor.__isub__ = lambda self, other: self.sub_(other)
MiniTensor.__imul__ = lambda self, other: self.mul_(other)

# %% tags=["style:composed"] exercise="view"
class Viewing:
    """Makes tensors that share the memory of one."""

    def __init__(self, tensor):
        self.tensor = tensor

    def share(self, output):
        output._counter = self.tensor._counter
        return output

    def through(self, recipe):
        output = recipe(self.tensor)
        if not np.may_share_memory(self.tensor.data, output.data):
            return output
        base = self.tensor
        while base._base is not None:
            base = base._base
        self.share(output)._base = base
        remember(self.tensor, output, recipe)
        return output


def view(self, recipe):
    return Viewing(self).through(recipe)


def detach(self):
    return Viewing(self).share(MiniTensor(self.data, requires_grad=False))


def reshape(self, *shape):
    return view(self, lambda a: Reshape.apply(a, shape=shape if len(shape) != 1 else shape[0]))


def transpose(self, dim0, dim1):
    return view(self, lambda a: Transpose.apply(a, dim0=dim0, dim1=dim1))


def getitem(self, index):
    return view(self, lambda a: Index.apply(a, index=index))


MiniTensor.detach, MiniTensor.reshape, MiniTensor.transpose = detach, reshape, transpose
MiniTensor.__getitem__ = getitem

# %% tags=["style:composed"] exercise="fingerprints"
import zlib


def checksum(array):
    return array.shape, zlib.crc32(np.ascontiguousarray(array).tobytes())


def fingerprints(output):
    found, waiting, seen = {}, [], set()
    if output.grad_fn is not None:
        waiting = list(topological_order(output.grad_fn))
    for node in waiting:
        if node.saved is None or node in seen:
            continue
        seen.add(node)
        for position in range(len(node.saved)):
            if isinstance(node.saved[position], np.ndarray):
                found[(node, position)] = checksum(node.saved[position])
    return found


def silent_changes(before):
    names = []
    for key in before:
        node, position = key
        if node.saved is not None:
            note = node.notes[position]
            moved = note.counter.value - note.version if note is not None else 0
            if moved == 0 and checksum(node.saved[position]) != before[key]:
                names.append(node.name())
    return names

# %% tags=["style:plain"] exercise="versions"
def note_for(saved, inputs, output):
    places = [("output", output)] + [(i, inputs[i]) for i in range(len(inputs))][::-1]
    owners = {id(tensor.data): (place, tensor) for place, tensor in places}  # the first input wins
    if id(saved) in owners:
        source, tensor = owners[id(saved)]
        return Note(source, tensor._counter, tensor._counter.value)
    if isinstance(saved, np.ndarray):
        for _, tensor in places:
            if np.shares_memory(tensor.data, saved):
                return Note(None, tensor._counter, tensor._counter.value)


def written_to(note):
    return note is not None and note.counter.value != note.version


def saved_tensors(self):
    if self.saved is None:
        raise RuntimeError(SECOND_BACKWARD)
    changed = list(map(written_to, self.notes))
    if any(changed):
        raise modified(self, changed.index(True))
    return self.saved


Function.saved_tensors = property(saved_tensors)

# %% tags=["style:plain"] exercise="change"
import operator


def former_value(tensor):
    former = MiniTensor(np.array(tensor.data))
    former.grad_fn = tensor.grad_fn
    former.requires_grad = tensor.requires_grad
    return former


def change(self, operation):
    check_writable(self)
    new = operation(former_value(self))
    if self.shape != new.shape:
        mine, other = str(list(self.shape)), str(list(new.shape))
        raise RuntimeError("output with shape " + mine + " doesn't match the broadcast shape " + other)
    if new.requires_grad:
        take_over(self, new)
    np.copyto(self.data, new.data)
    self._counter.value += 1
    return self


def in_place(function):
    return lambda self, other: change(self, lambda former: function(former, other))


MiniTensor.add_ = MiniTensor.__iadd__ = in_place(operator.add)
MiniTensor.sub_ = MiniTensor.__isub__ = in_place(operator.sub)
MiniTensor.mul_ = MiniTensor.__imul__ = in_place(operator.mul)
MiniTensor.copy_ = in_place(Copy.apply)
MiniTensor.zero_ = lambda self: self.copy_(0.0)

# %% tags=["style:plain"] exercise="view"
def view(self, recipe):
    output = recipe(self)
    if not np.shares_memory(self.data, output.data):
        return output
    output._counter = self._counter
    output._base = self
    if self._base is not None:
        output._base = self._base
    remember(self, output, recipe)
    return output


def detach(self):
    with no_grad():
        alias = Reshape.apply(self, shape=self.shape)
    alias._counter = self._counter
    return alias


MiniTensor.detach = detach

# %% tags=["style:plain"] exercise="copy_slices"
class CopySlices(Function):
    @staticmethod
    def forward(ctx, base, part, positions):
        backward_in_time = positions.ravel()[::-1]  # so that the first of equal positions is the one written last
        ctx.targets, first = np.unique(backward_in_time, return_index=True)
        ctx.sources = positions.size - 1 - first
        ctx.shape = positions.shape
        result = base.flatten()
        result[ctx.targets] = np.broadcast_to(part, positions.shape).flatten()[ctx.sources]
        return result.reshape(base.shape)

    @staticmethod
    def backward(ctx, grad):
        for_base, for_part = grad.flatten(), np.zeros(int(np.prod(ctx.shape)))
        for_part[ctx.sources] = for_base[ctx.targets]
        for_base[ctx.targets] = 0.0
        return for_base.reshape(grad.shape), for_part.reshape(ctx.shape)

    @classmethod
    def name(cls):
        return "CopySlices"

# %% tags=["style:plain"] exercise="fingerprints"
import hashlib


def digest(array):
    return hashlib.sha256(array.tobytes()).hexdigest()


def fingerprints(output):
    if output.grad_fn is None:
        return {}
    found = {}
    for node in topological_order(output.grad_fn):
        if node.saved is not None:
            found.update({(node, i): digest(x) for i, x in enumerate(node.saved) if isinstance(x, np.ndarray)})
    return found


def silent_changes(before):
    alive = [(node, i) for node, i in before if node.saved is not None]
    changed = [(node, i) for node, i in alive if digest(node.saved[i]) != before[node, i]]
    names = []
    for node, i in changed:
        if node.notes[i] is None or node.notes[i].version == node.notes[i].counter.value:
            names.append(node.name())
    return names

# %% tags=["style:loops"] exercise="copy_slices"
class CopySlices(Function):
    @staticmethod
    def forward(ctx, base, part, positions):
        part = part + np.zeros(positions.shape)
        ctx.last = {}  # place in the base -> place in the part
        result = base.copy()
        for place, position in np.ndenumerate(positions):
            ctx.last[int(position)] = place
            result[np.unravel_index(position, base.shape)] = part[place]
        ctx.shape = positions.shape
        return result

    @staticmethod
    def backward(ctx, grad):
        for_base, for_part = np.array(grad), np.zeros(ctx.shape)
        for position, place in ctx.last.items():
            where = np.unravel_index(position, grad.shape)
            for_part[place], for_base[where] = grad[where], 0.0
        return for_base, for_part

    @classmethod
    def name(cls):
        return "CopySlices"
