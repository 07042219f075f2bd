# %% tags=["style:compact"] exercise="apply"
def apply(cls, *inputs, **options):
    tensors, node = [*map(as_tensor, inputs)], cls()
    result = MiniTensor(cls.forward(node, *[tensor.data for tensor in tensors], **options))
    if switches.recording and sum(tensor.requires_grad for tensor in tensors):
        record(node, tensors, result)
    return result


Function.apply = classmethod(apply)

# %% tags=["style:compact"] exercise="no_grad"
import contextlib


@contextlib.contextmanager
def recording(answer):
    before, switches.recording = switches.recording, answer
    try:
        yield
    finally:
        switches.recording = before


no_grad = functools.partial(recording, False)
enable_grad = functools.partial(recording, True)

# %% tags=["style:compact"] exercise="decorated"
def decorated(make, function):
    return functools.wraps(function)(lambda *arguments, **named: run_in(make(), function, arguments, named))


def run_in(context, function, arguments, named):
    with context:
        return function(*arguments, **named)


# What contextlib makes is a decorator already, and it makes a new context for each call.

# %% tags=["style:compact"] exercise="detach"
MiniTensor.detach = lambda self: MiniTensor(self.data[...], requires_grad=False)

# %% tags=["style:compact"] exercise="inference_mode"
@contextlib.contextmanager
def inference_mode(mode=True):
    before = switches.recording, switches.inference
    switches.recording, switches.inference = (False, True) if mode else (True, False)
    try:
        yield
    finally:
        switches.recording, switches.inference = before


record_anything = record


def record(ctx, inputs, output):
    if is_inference_mode_enabled():
        return
    marked = {id(x.data) for x in inputs if x.is_inference()}
    if marked & {id(array) for array in ctx.saved_tensors}:
        raise RuntimeError(SAVED_INFERENCE)
    record_anything(ctx, inputs, output)

# %% tags=["style:compact"] exercise="gan_losses"
def distance(scores, goal):
    return ((scores - goal) ** 2).mean()


@no_grad()
def samples(generator, noise):
    return generator(noise)


def discriminator_loss(generator, discriminator, real, noise):
    return distance(discriminator(real), 1) + distance(discriminator(samples(generator, noise)), 0)


def generator_loss(generator, discriminator, noise):
    return distance(discriminator(generator(noise)), 1)

# %% tags=["style:stack"] exercise="apply"
def computed(operation, tensors, options):
    node = operation()
    return node, MiniTensor(operation.forward(node, *[tensor.data for tensor in tensors], **options))


class Applying:
    """A descriptor instead of a classmethod: what Function.apply means for each operation."""

    def __get__(self, instance, operation):
        def call(*inputs, **options):
            tensors = [as_tensor(x) for x in inputs]
            node, result = computed(operation, tensors, options)
            for tensor in tensors:
                if tensor.requires_grad and is_grad_enabled():
                    record(node, tensors, result)
                    break
            return result

        return call


Function.apply = Applying()

# %% tags=["style:stack"] exercise="no_grad"
class Stacked:
    """Keeps what was before on a stack that belongs to the thread, so the object itself remembers nothing."""

    earlier = threading.local()

    def __init__(self, answer):
        self.answer = answer

    def __enter__(self):
        vars(self.earlier).setdefault("stack", []).append(switches.recording)
        switches.recording = self.answer

    def __exit__(self, *error):
        switches.recording = self.earlier.stack.pop()

    def __call__(self, function):
        return decorated(self, function)


class no_grad(Stacked):
    def __init__(self):
        super().__init__(False)


class enable_grad(Stacked):
    def __init__(self):
        super().__init__(True)

# %% tags=["style:stack"] exercise="decorated"
class Decorated:
    """A callable object in place of the function; the stack of the thread makes one mode enough for all calls."""

    def __init__(self, mode, function):
        self.mode, self.function = mode, function
        functools.update_wrapper(self, function)

    def __call__(self, *arguments, **named):
        self.mode.__enter__()
        try:
            return self.function(*arguments, **named)
        finally:
            self.mode.__exit__(None, None, None)


decorated = Decorated

# %% tags=["style:stack"] exercise="detach"
def detach(self):
    result = MiniTensor(np.zeros(()))
    result.data = self.data.view()
    return result


MiniTensor.detach = detach

# %% tags=["style:stack"] exercise="inference_mode"
class inference_mode(Stacked):
    def __init__(self, mode=True):
        super().__init__(not mode)

    def __enter__(self):
        super().__enter__()
        self.earlier.stack.append(switches.inference)
        switches.inference = not self.answer

    def __exit__(self, *error):
        switches.inference = self.earlier.stack.pop()
        super().__exit__(*error)


def record(ctx, inputs, output):
    forbidden = [x.data for x in inputs if x.is_inference() and not switches.inference]
    for array in ctx.saved_tensors:
        for data in forbidden:
            if array is data:
                raise RuntimeError(SAVED_INFERENCE)
    if not switches.inference:
        ctx.input_shapes = tuple(x.data.shape for x in inputs)
        ctx.next_functions = tuple(map(edge_to, inputs))
        output.grad_fn, output.requires_grad = ctx, True

# %% tags=["style:stack"] exercise="gan_losses"
def discriminator_loss(generator, discriminator, real, noise):
    with no_grad():
        made = generator(noise)
    of_real, of_made = discriminator(real), discriminator(made)
    return (of_real * of_real - 2 * of_real + 1).mean() + (of_made * of_made).mean()


def generator_loss(generator, discriminator, noise):
    miss = 1 - discriminator(generator(noise))
    return (miss * miss).mean()

# %% tags=["style:plain"] exercise="apply"
def apply(cls, *inputs, **options):
    node, tensors, wanted = cls(), [], False
    for value in inputs:
        tensors.append(as_tensor(value))
        wanted = wanted or tensors[-1].requires_grad
    output = MiniTensor(cls.forward(node, *[tensor.data for tensor in tensors], **options))
    if not wanted or not is_grad_enabled():
        return output
    record(node, tensors, output)
    return output


Function.apply = classmethod(apply)

# %% tags=["style:plain"] exercise="no_grad"
class no_grad:
    recording = False

    def __init__(self):
        self.found = []  # what held before, one entry per block that this object has entered

    def __enter__(self):
        self.found.append(switches.recording)
        switches.recording = self.recording
        return self

    def __exit__(self, kind, error, traceback):
        switches.recording = self.found.pop()
        return False

    def __call__(self, function):
        return decorated(self, function)


class enable_grad(no_grad):
    recording = True

# %% tags=["style:plain"] exercise="decorated"
def decorated(self, function):
    def call(*arguments, **named):
        before = switches.recording
        switches.recording = self.recording
        try:
            return function(*arguments, **named)
        finally:
            switches.recording = before

    return functools.update_wrapper(call, function)

# %% tags=["style:plain"] exercise="detach"
def detach(self):
    with no_grad():
        return self.reshape(self.shape)


MiniTensor.detach = detach

# %% tags=["style:plain"] exercise="inference_mode"
def set_switches(recording, inference):
    """Set both switches; returns what they were."""
    before = switches.recording, switches.inference
    switches.recording, switches.inference = recording, inference
    return before


class inference_mode:
    def __init__(self, mode=True):
        self.mode = mode
        self.found = []

    def __enter__(self):
        self.found.append(set_switches(not self.mode, self.mode))

    def __exit__(self, *error):
        set_switches(*self.found.pop())

    def __call__(self, function):
        def call(*arguments, **named):
            before = set_switches(not self.mode, self.mode)
            try:
                return function(*arguments, **named)
            finally:
                set_switches(*before)

        return functools.update_wrapper(call, function)


def record(ctx, inputs, output):
    if switches.inference:
        return
    marked = [x for x in inputs if x.is_inference()]
    for saved in ctx.saved_tensors:
        if any(x.data is saved for x in marked):
            raise RuntimeError(SAVED_INFERENCE)
    edges, shapes = [], []
    for x in inputs:
        edges.append(edge_to(x))
        shapes.append(x.shape)
    ctx.next_functions, ctx.input_shapes = tuple(edges), tuple(shapes)
    output.grad_fn = ctx
    output.requires_grad = True

# %% tags=["style:plain"] exercise="gan_losses"
def mean_square(errors):
    return (errors * errors).sum() / errors.data.size


def discriminator_loss(generator, discriminator, real, noise):
    made = MiniTensor(generator(noise).data)
    return mean_square(discriminator(real) - 1) + mean_square(discriminator(made))


def generator_loss(generator, discriminator, noise):
    return mean_square(1 - discriminator(generator(noise)))
