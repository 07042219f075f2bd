"""Data sets and loaders, as in `torch.utils.data`.

The one idea to know: a loader asks a sampler for indices, a data set for the samples at those indices, and a collate
function to make a batch of them. With the same seed, the order is PyTorch's. There are no worker processes: options for
them are accepted and ignored.
"""

from mini_autograd.numerics.left_out import answers as _answers
from mini_autograd.utils.data.dataloader import DataLoader, default_collate, default_convert
from mini_autograd.utils.data.dataset import Dataset, Subset, TensorDataset, random_split
from mini_autograd.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = [
    "BatchSampler",
    "DataLoader",
    "Dataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Subset",
    "TensorDataset",
    "default_collate",
    "default_convert",
    "random_split",
]

__getattr__ = _answers(__name__)
