# %% tags=["style:compact"] exercise="anomaly"
import contextlib


@contextlib.contextmanager
def detect_anomaly(mode=True):
    found, switches.anomaly = switches.anomaly, mode
    try:
        yield
    finally:
        switches.anomaly = found


def check_shares(node, shares):
    arrays = [0.0 if share is None else as_tensor(share).data for share in shares]
    bad = [number for number, array in enumerate(arrays) if np.any(array != array)]  # only NaN differs from itself
    if bad:
        where_from = "\n".join(node.calls) if node.calls else NO_CALLS
        raise RuntimeError(f"Function '{node.name()}' returned nan values in its {bad[0]}th output.\n{where_from}")

# %% tags=["style:compact"] exercise="norms"
def grad_norms(model):
    return {n: p.grad if p.grad is None else (p.grad.data**2).sum().item() ** 0.5 for n, p in model.named_parameters()}

# %% tags=["style:compact"] exercise="repair_one"
def fit(model, optimizer, x, y, steps):
    losses = []
    while len(losses) < steps:
        loss = ((model(x) - y) ** 2).mean()
        for parameter in optimizer.parameters:
            parameter.grad = None
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses


def column_loss(prediction, target):
    values = target.data if isinstance(target, MiniTensor) else np.asarray(target)
    if values.ndim not in (1, 2) or len(values) != len(prediction.data) or values.size != len(values):
        raise ValueError(f"{prediction.shape} and {values.shape} do not fit")
    differences = prediction.reshape(-1) - as_tensor(target).reshape(-1)
    return (differences * differences).mean()


def lengths(x):
    squares = (x * x).sum(1)
    empty = (squares.data == 0) * 1.0
    return (squares + empty).sqrt() - empty

# %% tags=["style:compact"] exercise="outputs"
def first_bad(model, x):
    pairs = [("input", as_tensor(x)), *layer_outputs(model, x)]
    return next((name for name, value in pairs if np.isnan(value.data * 0.0).any()), None)

# %% tags=["style:compact"] exercise="preflight"
def preflight(model, optimizer, loss_function, x, y):
    names, parameters = zip(*model.named_parameters())
    known = {id(p) for p in optimizer.parameters}
    say = ["not in the optimizer: " + name for name, p in zip(names, parameters) if id(p) not in known]
    loss = loss_function(model(x), y)
    graph = topological_order(edge_to(loss)[0])
    leaves = [node.variable for node in graph if isinstance(node, AccumulateGrad)]
    foreign = [leaf for leaf in leaves if not any(leaf is p for p in parameters)]
    say += [f"not in the model: shape {leaf.shape}" for leaf in foreign]
    kept = [(leaf, leaf.grad) for leaf in (*parameters, *foreign)]
    for leaf, _ in kept:
        leaf.grad = None
    try:
        loss.backward(np.ones_like(loss.data))
        say += [f"no gradient: {name}" if p.grad is None else f"zero gradient: {name}"
                for name, p in zip(names, parameters) if p.grad is None or not np.abs(p.grad.data).sum()]
    finally:
        for leaf, former in kept:
            leaf.grad = former
    return say

# %% tags=["style:compact"] exercise="repair_two"
class Deep(Module):
    def __init__(self, sizes):
        super().__init__()
        self.count = len(sizes) - 1
        for number in range(self.count):
            setattr(self, f"layer{number}", LinearLayer(sizes[number], sizes[number + 1]))

    def forward(self, x):
        for number in range(self.count):
            x = getattr(self, f"layer{number}")(x)
            if number + 1 < self.count:
                x = x.tanh()
        return x


def train_epochs(model, optimizer, loader, validation, epochs, loss_function):
    losses, validated = [], []
    for _ in range(epochs):
        model.train(True)
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_function(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        total, count = 0.0, 0
        model.eval()
        with no_grad():
            for x, y in validation:
                total, count = total + len(x.data) * loss_function(model(x), y).item(), count + len(x.data)
        validated.append(total / count)
        model.train()
    model.train()
    return losses, validated


def classification(scores, labels):
    rows = np.arange(len(labels))
    loss = -scores.log_softmax(dim=1)[rows, labels].mean()
    return loss, sum(int(np.argmax(row) == label) for row, label in zip(scores.data, labels)) / len(rows)

# %% tags=["style:plain"] exercise="anomaly"
class detect_anomaly:
    def __init__(self, mode=True):
        self.mode = mode
        self.found = []

    def __enter__(self):
        self.found.append(switches.anomaly)
        switches.anomaly = self.mode
        return self

    def __exit__(self, *error):
        switches.anomaly = self.found.pop()
        return False


def has_nan(share):
    if share is None:
        return False
    array = share.data if isinstance(share, MiniTensor) else share
    return bool(np.isnan(array).sum() > 0)


def check_shares(node, shares):
    for number in range(len(shares)):
        if has_nan(shares[number]):
            text = f"Function '{node.name()}' returned nan values in its {number}th output."
            for call in node.calls if len(node.calls) > 0 else [NO_CALLS]:
                text += "\n" + call
            raise RuntimeError(text)

# %% tags=["style:plain"] exercise="norms"
def grad_norms(model):
    norms = {}
    for name, parameter in model.named_parameters():
        norms[name] = None
        if parameter.grad is not None:
            entries = parameter.grad.data.flatten()
            norms[name] = math.sqrt(entries @ entries)
    return norms

# %% tags=["style:plain"] exercise="repair_one"
def fit(model, optimizer, x, y, steps):
    parameters, losses = list(optimizer.parameters), []
    for _ in range(steps):
        loss = mse_loss(model(x), y)
        slopes = grad(loss, parameters, allow_unused=True)
        for parameter, slope in zip(parameters, slopes):
            parameter.grad = slope
        optimizer.step()
        losses.append(loss.item())
    return losses


def column_loss(prediction, target):
    target = as_tensor(target)
    rows = prediction.shape[0]
    if target.shape == (rows, 1):
        target = target[:, 0]
    elif target.shape != (rows,):
        raise ValueError(f"a target of {target.shape} does not fit a prediction of {prediction.shape}")
    return ((prediction[:, 0] - target) ** 2).mean()


def lengths(x):
    squares = (x * x).sum(1)
    some = (squares.data > 0).astype(float)
    return (squares + (1 - some)) ** 0.5 * some

# %% tags=["style:plain"] exercise="outputs"
def first_bad(model, x):
    finite = {"input": np.isfinite(as_tensor(x).data)}
    for name, output in layer_outputs(model, x):
        finite.setdefault(name, np.isfinite(output.data))
    for name in finite:
        if not np.all(finite[name]):
            return name
    return None

# %% tags=["style:plain"] exercise="preflight"
def preflight(model, optimizer, loss_function, x, y):
    findings, own = [], {}
    for name, parameter in model.named_parameters():
        own[parameter] = name
        if not any(parameter is other for other in optimizer.parameters):
            findings.append(f"not in the optimizer: {name}")
    loss = loss_function(model(x), y)
    for node in topological_order(edge_to(loss)[0]):
        if isinstance(node, AccumulateGrad) and node.variable not in own:
            findings.append(f"not in the model: shape {node.variable.shape}")
    for parameter, name in own.items():
        (slope,) = grad(loss, parameter, retain_graph=True, allow_unused=True)
        if slope is None:
            findings.append(f"no gradient: {name}")
        elif np.count_nonzero(slope.data) == 0:
            findings.append(f"zero gradient: {name}")
    return findings

# %% tags=["style:plain"] exercise="repair_two"
class Deep(Module):
    def __init__(self, sizes):
        super().__init__()
        parts = []
        for inputs, outputs in zip(sizes[:-1], sizes[1:]):
            parts += [LinearLayer(inputs, outputs), TanhLayer()]
        self.net = Sequential(*parts[:-1])

    def forward(self, x):
        return self.net(x)


def train_epochs(model, optimizer, loader, validation, epochs, loss_function):
    losses, validated = [], []
    for _ in range(epochs):
        model.train()
        for x, y in loader:
            loss = loss_function(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with no_grad():
            pairs = [(loss_function(model(x), y).item(), x.shape[0]) for x, y in validation]
        validated.append(sum(loss * rows for loss, rows in pairs) / sum(rows for _, rows in pairs))
    model.train()
    return losses, validated


def classification(scores, labels):
    chosen = np.zeros(scores.shape)
    chosen[np.arange(len(labels)), labels] = 1.0
    loss = -(scores.log_softmax(1) * chosen).sum() / len(labels)
    right = np.argmax(scores.data, axis=1) == np.asarray(labels)
    return loss, np.count_nonzero(right) / len(labels)

# %% tags=["style:composed"] exercise="anomaly"
from functools import partial


class detect_anomaly:
    """Keeps, for each block, the call that undoes it."""

    def __init__(self, mode=True):
        self.undo, self.mode = [], mode

    def __enter__(self):
        self.undo.append(partial(setattr, switches, "anomaly", switches.anomaly))
        setattr(switches, "anomaly", self.mode)

    def __exit__(self, *error):
        self.undo.pop()()


def check_shares(node, shares):
    arrays = ((number, as_tensor(share).data) for number, share in enumerate(shares) if share is not None)
    number = next((number for number, array in arrays if np.isnan(np.ravel(array)).any()), None)
    if number is not None:
        lines = ["Function '{}' returned nan values in its {}th output.".format(node.name(), number)]
        lines.extend(node.calls)
        if len(lines) == 1:
            lines.append(NO_CALLS)
        raise RuntimeError("\n".join(lines))

# %% tags=["style:composed"] exercise="norms"
def euclidean(tensor):
    return tensor if tensor is None else float(np.sqrt(np.sum(np.square(tensor.data))))


def grad_norms(model):
    names = [name for name, _ in model.named_parameters()]
    return dict(zip(names, map(euclidean, (parameter.grad for parameter in model.parameters()))))

# %% tags=["style:composed"] exercise="repair_one"
def fit(model, optimizer, x, y, steps):
    return [train_step(model, optimizer, mse_loss, x, y) for _ in range(steps)]


def column_loss(prediction, target):
    column, target = prediction.shape, as_tensor(target)
    if target.shape not in {column, column[:1]}:
        raise ValueError("shapes that do not fit: {} and {}".format(column, target.shape))
    return mse_loss(prediction.reshape(*target.shape), target)


def lengths(x):
    return ((x * x).sum(dim=1) + 1e-300).sqrt()  # far too little to be seen in any other row

# %% tags=["style:composed"] exercise="outputs"
def is_bad(tensor):
    return not (np.abs(as_tensor(tensor).data) < np.inf).all()


def first_bad(model, x):
    if is_bad(x):
        return "input"
    bad = [name for name, output in layer_outputs(model, x) if is_bad(output)]
    return bad[0] if bad else None

# %% tags=["style:composed"] exercise="preflight"
def leaves_behind(tensor):
    met, waiting = set(), [edge_to(tensor)[0]]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in met:
            met.add(node)
            waiting += [source for source, _ in node.next_functions]
            if isinstance(node, AccumulateGrad):
                yield node.variable


def preflight(model, optimizer, loss_function, x, y):
    names = {parameter: name for name, parameter in model.named_parameters()}
    loss = loss_function(model(x), y)
    outside = [leaf for leaf in leaves_behind(loss) if leaf not in names]
    ends = [edge_to(parameter)[0] for parameter in names]
    found = walk_back(edge_to(loss)[0], MiniTensor(np.ones(loss.shape)), False, False, ends)

    def finding(name, end):
        if end not in found:
            return [f"no gradient: {name}"]
        return [] if np.any(found[end].data != 0) else [f"zero gradient: {name}"]

    missing = [f"not in the optimizer: {name}" for p, name in names.items() if p not in set(optimizer.parameters)]
    missing += [f"not in the model: shape {leaf.shape}" for leaf in outside]
    return missing + sum(map(finding, names.values(), ends), [])

# %% tags=["style:composed"] exercise="repair_two"
class Deep(Module):
    """One layer, and behind it a network that is one layer shorter."""

    def __init__(self, sizes):
        super().__init__()
        self.layer = LinearLayer(sizes[0], sizes[1])
        self.deeper = len(sizes) > 2
        if self.deeper:
            self.rest = Deep(sizes[1:])

    def forward(self, x):
        output = self.layer(x)
        return self.rest(output.tanh()) if self.deeper else output


def train_epochs(model, optimizer, loader, validation, epochs, loss_function):
    def epoch():
        model.train()
        steps = [train_step(model, optimizer, loss_function, x, y) for x, y in loader]
        return steps, evaluate(model, validation, loss_function)

    results = [epoch() for _ in range(epochs)]
    model.train()
    return [loss for steps, _ in results for loss in steps], [value for _, value in results]


def classification(scores, labels):
    logs = scores.log_softmax(dim=-1)
    loss = sum(logs[row, label] for row, label in enumerate(labels)) / -len(labels)
    best = scores.data.argsort(axis=1)[:, -1]
    return loss, float(np.mean([found == label for found, label in zip(best, labels)]))
