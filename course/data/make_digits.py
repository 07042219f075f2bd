"""Makes digits.npz: 800 small pictures of handwritten-looking digits, drawn by a seeded generator.

Each picture is 8 by 8 pixels with values from 0 to 16. A digit is a few strokes in the unit square; every picture
moves, turns, slants and scales them a little, draws them with a pen of its own width, and adds noise. Run this file to
make digits.npz again: `images` (800, 8, 8) and `labels` (800,), both uint8, in random order.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

PICTURES, SIDE, GRAYS, SEED = 800, 8, 16, 8


def arc(center: tuple[float, float], radii: tuple[float, float], start: float, end: float) -> Array:
    """Points (x, y) on a part of an ellipse; angles in degrees, 0 points right, 90 points up."""
    angles = np.radians(np.linspace(start, end, 13))
    return np.stack([center[0] + radii[0] * np.cos(angles), center[1] + radii[1] * np.sin(angles)], axis=1)


def line(*points: tuple[float, float]) -> Array:
    """A stroke along straight pieces."""
    return np.array(points)


STROKES = {
    0: [arc((0.5, 0.5), (0.3, 0.45), 0, 360)],
    1: [line((0.3, 0.75), (0.55, 0.95), (0.55, 0.05))],
    2: [arc((0.5, 0.7), (0.3, 0.25), 170, -40), line((0.73, 0.54), (0.2, 0.05), (0.82, 0.05))],
    3: [arc((0.45, 0.72), (0.3, 0.23), 150, -90), arc((0.45, 0.27), (0.35, 0.23), 90, -150)],
    4: [line((0.65, 0.05), (0.65, 0.95), (0.15, 0.35), (0.88, 0.35))],
    5: [line((0.78, 0.95), (0.28, 0.95), (0.25, 0.55)), arc((0.45, 0.32), (0.35, 0.28), 120, -150)],
    6: [arc((0.75, 0.5), (0.55, 0.47), 95, 190), arc((0.5, 0.27), (0.3, 0.22), 0, 360)],
    7: [line((0.18, 0.95), (0.82, 0.95), (0.4, 0.05))],
    8: [arc((0.5, 0.72), (0.25, 0.22), 0, 360), arc((0.5, 0.27), (0.31, 0.24), 0, 360)],
    9: [arc((0.48, 0.7), (0.28, 0.24), 0, 360), line((0.76, 0.72), (0.62, 0.05))],
}


def moved(strokes: list[Array], generator: np.random.Generator) -> list[Array]:
    """The strokes turned, slanted, scaled and shifted at random."""
    angle, slant = generator.normal(0, 0.14), generator.normal(0.1, 0.14)
    width, height = generator.normal(0.78, 0.08), generator.normal(0.84, 0.05)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    change = turn @ np.array([[width, slant], [0.0, height]])
    shift = 0.5 + generator.normal(0, 0.04, 2)
    return [(stroke - 0.5 + generator.normal(0, 0.012, stroke.shape)) @ change.T + shift for stroke in strokes]


def picture(digit: int, generator: np.random.Generator) -> Array:
    """One digit as an array of gray values: dark where a stroke is near."""
    x, y = np.meshgrid((np.arange(SIDE) + 0.5) / SIDE, 1 - (np.arange(SIDE) + 0.5) / SIDE)
    pixels = np.stack([x, y], axis=-1)
    distance = np.full((SIDE, SIDE), np.inf)
    for stroke in moved(STROKES[digit], generator):
        for start, end in pairwise(stroke):
            way = end - start
            along = np.clip(((pixels - start) @ way) / (way @ way), 0, 1)
            distance = np.minimum(distance, np.linalg.norm(pixels - start - along[..., None] * way, axis=-1))
    ink = np.exp(-((distance / generator.uniform(0.065, 0.1)) ** 2))
    return np.clip(np.rint(GRAYS * (ink + generator.normal(0, 0.06, ink.shape))), 0, GRAYS)


def digits() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """All pictures and their labels, each digit equally often."""
    generator = np.random.default_rng(SEED)
    labels = generator.permutation(np.arange(PICTURES) % 10)
    images = np.stack([picture(int(label), generator) for label in labels])
    return images.astype(np.uint8), labels.astype(np.uint8)


if __name__ == "__main__":
    images, labels = digits()
    np.savez_compressed(Path(__file__).with_name("digits.npz"), images=images, labels=labels)
