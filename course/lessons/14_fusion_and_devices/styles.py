# %% tags=["style:compact"] exercise="array_module"
def array_module(value):
    return value.__array_namespace__() if hasattr(value, "__array_namespace__") else np


def initialize(self, data, requires_grad=False):
    elsewhere = array_module(data) is not np
    MiniTensor.on_host(self, 0.0 if elsewhere else data, requires_grad=requires_grad)
    if elsewhere:
        self.data = data


MiniTensor.__init__ = initialize

# %% tags=["style:compact"] exercise="note"
def note(self, ufunc, method, *inputs, **options):
    ours = [getattr(x, "trace", None) is self.trace for x in inputs]
    good = all(mine or type(x) in (bool, int, float) for mine, x in zip(ours, inputs))
    if (method, options, ufunc.nout, ufunc.signature) != ("__call__", {}, 1, None) or not good:
        raise Untraceable
    trace, result = self.trace, self.trace.array()
    trace.steps += [(ufunc, tuple(x.name if mine else x for mine, x in zip(ours, inputs)), result.name)]
    return result

# %% tags=["style:compact"] exercise="run_in_blocks"
def needed_steps(steps, results):
    makers = {result: (arguments, i) for i, (_, arguments, result) in enumerate(steps)}
    found, waiting = set(), list(results)
    while waiting:
        arguments, i = makers.get(waiting.pop(), ((), None))
        if i is not None and i not in found:
            found.add(i)
            waiting.extend(arguments)
    return [steps[i] for i in sorted(found)]


def run_in_blocks(steps, arrays, results, block=BLOCK):
    shape = np.shape([*arrays.values()][0])
    size = int(np.prod(shape))
    space = {name: np.ravel(array) for name, array in arrays.items()}
    copies = {name: array.copy() for name, array in arrays.items() if name in results}
    space.update((step[2], np.empty(size if step[2] in results else min(size, block))) for step in steps)

    def part(name, start):
        array = space[name]
        return array[start : start + block] if array.size == size else array[: min(block, size - start)]

    for start in range(0, size, block):
        for function, arguments, result in steps:
            function(*(part(a, start) if a in space else a for a in arguments), out=part(result, start))
    return [copies[name] if name in copies else space[name].reshape(shape) for name in results]

# %% tags=["style:compact"] exercise="record_chain"
def record_chain(function, tensors):
    trace = Trace(np.shape(tensors[0].data))
    twins = [MiniTensor(trace.array(), x.requires_grad) for x in tensors]
    output, names = function(*twins), [f"v{i}" for i in range(len(tensors))]
    seed = trace.array() if output.requires_grad else None
    if seed is not None:
        output.backward(seed)
    found = [getattr(getattr(twin.grad, "data", None), "name", None) for twin in twins]
    return Chain(trace.steps, names, output.data.name, getattr(seed, "name", None), found)


def guards(inputs):
    return is_grad_enabled(), tuple(
        f"tensor {x.shape} {bool(x.requires_grad)}" if isinstance(x, MiniTensor) else repr(x) for x in inputs
    )

# %% tags=["style:compact"] exercise="to"
class To(Function):
    @staticmethod
    def forward(ctx, a, module):
        ctx.back = functools.partial(moved, module=array_module(a))
        return moved(a, module)

    @staticmethod
    def backward(ctx, grad):
        return ctx.back(grad)


def on_one_device(inputs):
    numbers = {i for i, x in enumerate(inputs) if type(x) in (bool, int, float)}
    tensors = {i: as_tensor(x) for i, x in enumerate(inputs) if i not in numbers}
    modules = [array_module(x.data) for x in tensors.values() if x.ndim or array_module(x.data) is not np] or [np]
    if any(module is not modules[0] for module in modules):
        places = {str(x.device) for x in tensors.values()}
        raise RuntimeError(f"Expected all tensors to be on the same device, but found {places}")

    def there(i):
        if i in numbers:
            return MiniTensor(modules[0].asarray(1.0 * inputs[i]))
        return tensors[i] if array_module(tensors[i].data) is modules[0] else To.apply(tensors[i], module=modules[0])

    return [there(i) for i in range(len(inputs))]

# %% tags=["style:compact"] exercise="traffic"
def traffic(steps, results, size, fused=False):
    arrays = [{a for a in step[1] if type(a) is str} for step in (needed_steps(steps, results) if fused else steps)]
    if fused:
        read, written = len(set().union(*arrays) - {step[2] for step in steps}), len({*results})
    else:
        read, written = sum(map(len, arrays)), len(steps)
    return size * 8 * read, size * 8 * written

# %% tags=["style:asking"] exercise="array_module"
def array_module(value):
    try:
        return type(value).__array_namespace__(value)
    except AttributeError:
        return np


class HostOnly(Exception):
    """For data that NumPy is not to touch."""


def initialize(self, data, requires_grad=False):
    try:
        if array_module(data) is not np:
            raise HostOnly
        MiniTensor.on_host(self, data, requires_grad)
    except HostOnly:
        MiniTensor.on_host(self, np.zeros(()), requires_grad)
        setattr(self, "data", data)


MiniTensor.__init__ = initialize

# %% tags=["style:asking"] exercise="note"
def name_in(trace, x):
    if isinstance(x, Traced):
        if x.trace is not trace:
            raise Untraceable("an array of another trace")
        return x.name
    if not isinstance(x, (bool, int, float)):
        raise Untraceable("no number and no traced array")
    return x


def note(self, ufunc, method, *inputs, **options):
    for reason, wrong in {
        "a method of a function": method != "__call__",
        "named arguments": len(options) > 0,
        "several results": ufunc.nout > 1,
        "not elementwise": bool(ufunc.signature),
    }.items():
        if wrong:
            raise Untraceable(reason)
    arguments = tuple(name_in(self.trace, x) for x in inputs)
    made = self.trace.array()
    self.trace.steps.append((ufunc, arguments, made.name))
    return made

# %% tags=["style:asking"] exercise="run_in_blocks"
def needed_steps(steps, results):
    names = [*results]
    for function, arguments, result in steps[::-1]:
        if result in names:
            names.extend(a for a in arguments if isinstance(a, str))
    return [step for step in steps if step[2] in names]


class Runner:
    """Keeps the buffers; the numbers of a block live in `now`."""

    def __init__(self, steps, block):
        self.steps, self.block = steps, block
        self.buffers = {}

    def room(self, name, entries):
        if name not in self.buffers:
            self.buffers[name] = np.zeros(entries)
        return self.buffers[name][:entries]

    def run(self, now, targets, entries):
        for function, arguments, result in self.steps:
            out = targets[result] if result in targets else self.room(result, entries)
            function(*[now[a] if isinstance(a, str) else a for a in arguments], out=out)
            now[result] = out


def run_in_blocks(steps, arrays, results, block=BLOCK):
    flat = {name: np.ascontiguousarray(array).ravel() for name, array in arrays.items()}
    shape, size = [(array.shape, array.size) for array in arrays.values()][0]
    made = {step[2] for step in steps}
    full = {name: np.empty(size) for name in results if name in made}
    runner, start = Runner(steps, block), 0
    while start < size:
        cut = slice(start, min(start + block, size))
        now = {name: array[cut] for name, array in flat.items()}
        runner.run(now, {name: array[cut] for name, array in full.items()}, cut.stop - cut.start)
        start = cut.stop
    return [full[name].reshape(shape) if name in full else np.array(arrays[name]) for name in results]

# %% tags=["style:asking"] exercise="record_chain"
class Recorder:
    def __init__(self, shape):
        self.trace = Trace(shape)

    def stand_in(self, tensor):
        array = self.trace.array()
        return MiniTensor(array, requires_grad=bool(tensor.requires_grad)), array.name


def record_chain(function, tensors):
    recorder = Recorder(tensors[0].shape)
    pairs = [recorder.stand_in(tensor) for tensor in tensors]
    output = function(*[stand_in for stand_in, _ in pairs])
    gradients, cotangent = [None] * len(pairs), None
    if output.requires_grad:
        seed, cotangent = recorder.stand_in(MiniTensor(0.0))
        output.backward(seed)
        gradients = [x.grad.data.name if x.grad is not None else None for x, _ in pairs]
    return Chain(recorder.trace.steps, [name for _, name in pairs], output.data.name, cotangent, gradients)


def guards(inputs):
    facts = [("recording", switches.recording)]
    for x in inputs:
        if isinstance(x, MiniTensor):
            facts += [("shape", *x.shape), ("gradient", x.requires_grad)]
        else:
            facts += [("is", type(x).__name__, x)]
    return tuple(facts)

# %% tags=["style:asking"] exercise="to"
class To(Function):
    @staticmethod
    def forward(ctx, a, module):
        ctx.module_before = np if isinstance(a, (np.ndarray, np.generic)) else array_module(a)
        return a if module is ctx.module_before else moved(a, module)

    @staticmethod
    def backward(ctx, grad):
        return moved(grad, ctx.module_before) if array_module(grad) is not ctx.module_before else grad


def on_one_device(inputs):
    elsewhere = on_cpu = None
    tensors = []
    for x in inputs:
        x = x if isinstance(x, (MiniTensor, int, float)) else MiniTensor(x)
        tensors.append(x)
        if not isinstance(x, MiniTensor):
            continue
        if array_module(x.data) is not np:
            if elsewhere is not None and array_module(x.data) is not elsewhere:
                raise RuntimeError("Expected all tensors to be on the same device, but two are elsewhere")
            elsewhere = array_module(x.data)
        elif x.shape != ():
            on_cpu = x
    if elsewhere is not None and on_cpu is not None:
        raise RuntimeError("Expected all tensors to be on the same device, but one is on cpu")
    for i, x in enumerate(tensors):
        if not isinstance(x, MiniTensor):
            tensors[i] = MiniTensor((elsewhere or np).asarray(float(x)))
        elif elsewhere is not None and array_module(x.data) is np:
            tensors[i] = To.apply(x, module=elsewhere)
    return tensors

# %% tags=["style:asking"] exercise="traffic"
def traffic(steps, results, size, fused=False):
    read = written = 0
    made, met = set(), set()
    for function, arguments, result in needed_steps(steps, results) if fused else steps:
        for name in dict.fromkeys(arguments):
            if not isinstance(name, str) or fused and (name in made or name in met):
                continue
            met.add(name)
            read += 8 * size
        made.add(result)
        if not fused or result in results:
            written += 8 * size
    return read, written

# %% tags=["style:plain"] exercise="array_module"
ON_HOST = (np.ndarray, np.generic, bool, int, float, list, tuple)


def array_module(value):
    if isinstance(value, ON_HOST) or not hasattr(value, "__array_namespace__"):
        return np
    return value.__array_namespace__()


def initialize(self, data, requires_grad=False):
    foreign = array_module(data) is not np
    if foreign:
        MiniTensor.on_host(self, [], requires_grad)
        self.data = data
        return
    MiniTensor.on_host(self, data, requires_grad)


MiniTensor.__init__ = initialize

# %% tags=["style:plain"] exercise="note"
def note(self, ufunc, method, *inputs, **options):
    if method != "__call__":
        raise Untraceable(f"{ufunc.__name__}.{method}")
    if len(options) != 0:
        raise Untraceable("options: " + ", ".join(options))
    if ufunc.nout != 1 or ufunc.signature:
        raise Untraceable(f"{ufunc.__name__} is not elementwise")
    names = []
    for x in inputs:
        match x:
            case Traced() if x.trace is self.trace:
                names.append(x.name)
            case bool() | int() | float():
                names.append(x)
            case _:
                raise Untraceable(f"an input of type {type(x).__name__}")
    result = self.trace.array()
    self.trace.steps.append((ufunc, tuple(names), result.name))
    return result

# %% tags=["style:plain"] exercise="run_in_blocks"
def needed_steps(steps, results):
    needed, before = set(results), None
    while needed != before:  # until nothing is added any more
        before = set(needed)
        for _, arguments, result in steps:
            if result in needed:
                needed.update(arguments)
    return [step for step in steps if step[2] in needed]


def run_in_blocks(steps, arrays, results, block=BLOCK):
    shape = next(iter(arrays.values())).shape
    copies = {name: array.flatten() for name, array in arrays.items()}
    size = next(iter(copies.values())).size
    room = {}  # a requested result has room for all entries, any other for one block
    for _, _, result in steps:
        room[result] = np.empty(size if result in results else min(block, size))
    for start in range(0, size, block):
        count = min(block, size - start)
        values = {name: array[start : start + count] for name, array in copies.items()}
        for function, arguments, result in steps:
            place = start if result in results else 0
            values[result] = room[result][place : place + count]
            numbers = [values[a] if isinstance(a, str) else a for a in arguments]
            function(*numbers, out=values[result])
    return [{**copies, **room}[name].reshape(shape) for name in results]

# %% tags=["style:plain"] exercise="record_chain"
def record_chain(function, tensors):
    trace, stand_ins = Trace(tensors[0].shape), []
    for x in tensors:
        stand_ins.append(MiniTensor(trace.array(), requires_grad=x.requires_grad))
    output = function(*stand_ins)
    if not isinstance(output.data, Traced):
        raise Untraceable("the result does not depend on the inputs")
    cotangent, gradients = None, [None for _ in stand_ins]
    if output.requires_grad:
        seed = MiniTensor(trace.array())
        cotangent = seed.data.name
        output.backward(seed)
        for i, x in enumerate(stand_ins):
            if x.grad is not None:
                gradients[i] = x.grad.data.name
    return Chain(trace.steps, [x.data.name for x in stand_ins], output.data.name, cotangent, gradients)


def guards(inputs):
    kinds, facts = [], []
    for x in inputs:
        tensor = isinstance(x, MiniTensor)
        kinds.append("tensor" if tensor else type(x))
        facts.append((x.shape, x.requires_grad) if tensor else x)
    return tuple(kinds), tuple(facts), is_grad_enabled()

# %% tags=["style:plain"] exercise="to"
class To(Function):
    @staticmethod
    def forward(ctx, a, module):
        ctx.way_back = lambda grad, source=array_module(a): moved(grad, source)
        return moved(a, module)

    @staticmethod
    def backward(ctx, grad):
        return ctx.way_back(grad)


def home_of(x):
    """The module where an input has to stay; None if it can go anywhere."""
    if isinstance(x, (bool, int, float)):
        return None
    module = array_module(x.data)
    return None if module is np and x.data.shape == () else module


def at(x, module):
    if isinstance(x, (bool, int, float)):
        return MiniTensor(module.asarray(float(x)))
    return x if array_module(x.data) is module else To.apply(x, module=module)


def on_one_device(inputs):
    inputs = [x if isinstance(x, (bool, int, float)) else as_tensor(x) for x in inputs]
    homes = {home_of(x) for x in inputs} - {None}
    if len(homes) > 1:
        devices = " and ".join(sorted({str(x.device) for x in inputs if home_of(x) is not None}))
        raise RuntimeError("Expected all tensors to be on the same device, but found " + devices)
    module = homes.pop() if homes else np
    return tuple(at(x, module) for x in inputs)

# %% tags=["style:plain"] exercise="traffic"
def arrays_among(arguments):
    return set(filter(lambda a: isinstance(a, str), arguments))


def traffic(steps, results, size, fused=False):
    array = 8 * size
    if fused:
        kept = needed_steps(steps, results)
        inputs, made = set(), set()
        for _, arguments, result in kept:
            inputs |= arrays_among(arguments) - made
            made.add(result)
        return array * len(inputs), array * len(set(results))
    read = written = 0
    for _, arguments, _ in steps:
        read += array * len(arrays_among(arguments))
        written += array
    return read, written
