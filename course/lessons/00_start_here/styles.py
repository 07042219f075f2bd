# %% tags=["style:compact"] exercise="product_rule"
product_rule = lambda a, b, gradient: (b * gradient, a * gradient)

# %% tags=["style:steps"] exercise="product_rule"
def product_rule(a, b, gradient):
    slope_of_a = b
    slope_of_b = a
    shares = [gradient * slope for slope in (slope_of_a, slope_of_b)]
    return tuple(shares)

# %% tags=["style:plain"] exercise="product_rule"
def product_rule(a, b, gradient):
    other_factor = {"a": b, "b": a}
    shares = {}
    for name in other_factor:
        shares[name] = other_factor[name] * gradient
    return shares["a"], shares["b"]
