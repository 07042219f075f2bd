# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: solution,test,check,points,tags,exercise,items,nbgrader,-all
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

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
