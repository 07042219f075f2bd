"""`torch.utils`: what it has that the engine has too, under PyTorch's names.

Both ways of PyTorch work: `utils.data.DataLoader`, and `from mini_autograd.utils.data import DataLoader`.
"""

import sys

from mini_autograd.utils import checkpoint, data

sys.modules[f"{__name__}.checkpoint"] = checkpoint
sys.modules[f"{__name__}.data"] = data

__all__ = ["checkpoint", "data"]
