# %% tags=["style:compact"] exercise="numerical_gradient"
def numerical_gradient(f, x, h=1e-5):
    x = np.asarray(x, dtype=float)
    moves = h * np.eye(x.size).reshape(x.size, *x.shape)
    slopes = [(f(x + move) - f(x - move)) / (2 * h) for move in moves]
    return np.array(slopes, dtype=float).reshape(x.shape)

# %% tags=["style:compact"] exercise="product_and_sum"
def product_and_sum_gradient(x, y):
    # x**2 * (y + 1)**2, differentiated as a whole
    return 2 * x * (y + 1) ** 2, 2 * x**2 * (y + 1)

# %% tags=["style:compact"] exercise="tanh_neuron"
def tanh_neuron_gradient(w, x, b, target):
    z = w * x + b
    outer = 2 * (math.tanh(z) - target)
    inner = np.array([x, w, 1.0]) / np.cosh(z) ** 2
    return (*(outer * inner), -outer)

# %% tags=["style:compact"] exercise="relu_chain"
def relu_neuron_gradient(w, x, b, target):
    z = w * x + b
    alive = float(z > 0)
    error = alive * z - target
    return 2 * error * alive * x, 2 * error * alive * w, 2 * error * alive, -2 * error

# %% tags=["style:compact"] exercise="relative_error"
def relative_error(a, b):
    pairs = list(zip(np.ravel(a).tolist(), np.ravel(b).tolist()))
    size = max(max(abs(p), abs(q)) for p, q in pairs)
    if size == 0:
        return 0.0
    return max(abs(p - q) for p, q in pairs) / size

# %% tags=["style:steps"] exercise="numerical_gradient"
def numerical_gradient(f, x, h=1e-5):
    shape = np.shape(x)
    entries = [float(entry) for entry in np.ravel(x)]

    def moved(number, change):
        copy = list(entries)
        copy[number] += change
        return f(np.array(copy).reshape(shape))

    slopes = []
    for number in range(len(entries)):
        rise = moved(number, h) - moved(number, -h)
        slopes.append(rise / (2 * h))
    return np.array(slopes, dtype=np.float64).reshape(shape)

# %% tags=["style:steps"] exercise="product_and_sum"
def product_and_sum_gradient(x, y):
    p = x * y
    s = p + x
    d_s = 2.0 * s
    d_p, d_x = d_s, d_s
    d_x = d_x + d_p * y
    d_y = d_p * x
    return [d_x, d_y]

# %% tags=["style:steps"] exercise="tanh_neuron"
def tanh_neuron_gradient(w, x, b, target):
    z = w * x + b
    up, down = math.exp(z), math.exp(-z)
    a = (up - down) / (up + down)
    d_a = 2 * (a - target)
    d_target = -d_a
    d_z = d_a * 4 / (up + down) ** 2
    d_w = d_z * x
    d_x = d_z * w
    return d_w, d_x, d_z, d_target

# %% tags=["style:steps"] exercise="relu_chain"
def relu_neuron_gradient(w, x, b, target):
    z = w * x + b
    if z <= 0:
        return 0.0, 0.0, 0.0, 2 * target
    d_z = 2 * (z - target)
    return d_z * x, d_z * w, d_z, -d_z

# %% tags=["style:steps"] exercise="relative_error"
def relative_error(a, b):
    both = np.stack([a, b])
    largest = np.max(np.abs(both))
    if largest == 0:
        return 0.0
    return float(np.max(np.ptp(both, axis=0)) / largest)

# %% tags=["style:plain"] exercise="numerical_gradient"
def numerical_gradient(f, x, h=1e-5):
    x = np.array(x, dtype=float)
    gradient = np.empty_like(x)
    for position, value in np.ndenumerate(x):
        values = []
        for step in (-h, h):
            moved = x.copy()
            moved[position] = value + step
            values.append(f(moved))
        gradient[position] = (values[1] - values[0]) / h / 2
    return gradient

# %% tags=["style:plain"] exercise="product_and_sum"
def product_and_sum_gradient(x, y):
    # multiplied out: x**2 * y**2 + 2 * x**2 * y + x**2
    return 2 * x * y**2 + 4 * x * y + 2 * x, 2 * x**2 * y + 2 * x**2

# %% tags=["style:plain"] exercise="tanh_neuron"
def sigmoid(z):
    return 1 / (1 + math.exp(-z))


def tanh_neuron_gradient(w, x, b, target):
    s = sigmoid(2 * (w * x + b))
    error = 2 * s - 1 - target  # tanh(z) is 2 * sigmoid(2 * z) - 1
    d_b = 2 * error * 4 * s * (1 - s)
    return d_b * x, d_b * w, d_b, -2 * error

# %% tags=["style:plain"] exercise="relu_chain"
def relu_neuron_gradient(w, x, b, target):
    z = w * x + b
    d_relu = 2 * (np.maximum(z, 0.0) - target)
    d_z = d_relu * np.heaviside(z, 0.0)
    return np.array([d_z * x, d_z * w, d_z, -d_relu])

# %% tags=["style:plain"] exercise="relative_error"
def relative_error(a, b):
    def largest(array):
        return np.linalg.norm(np.ravel(array), ord=np.inf)

    if not (np.any(a) or np.any(b)):
        return 0.0
    return largest(a - b) / max(largest(a), largest(b))
