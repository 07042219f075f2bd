"""Operations of neural networks: activations, convolution, pooling, normalization, dropout, attention, losses.

Activations and parameters come in, and activations or a loss go out.
"""
