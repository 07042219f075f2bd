"""A small GPT with everything that a training script for a large one has: settings for a GPU, parallel training that is
not requested, mixed precision that is off, micro-batches, warm-up and cosine decay, weight decay for matrices only, an
estimate of the loss, a checkpoint, and text from the top k letters.
"""

import inspect
import io
import math
from contextlib import nullcontext

import torch
import torch.nn as nn
from torch.distributed import destroy_process_group, init_process_group
from torch.nn import functional as F  # noqa: N812
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817

batch_size, context, micro_steps, steps, warmup = 4, 8, 2, 24, 4
top_rate, low_rate, decay, clip = 1e-2, 1e-3, 0.1, 1.0
parallel = False
device = "cuda" if torch.cuda.is_available() else "cpu"
dtype = "bfloat16" if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else "float32"

if parallel:
    init_process_group(backend="nccl")
torch.manual_seed(1337)
torch.cuda.manual_seed_all(1337)
torch.set_default_dtype(torch.float64)
kind = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[dtype]
around = nullcontext() if device == "cpu" else torch.amp.autocast(device_type=device, dtype=kind)
print(device, dtype, kind, kind.is_floating_point, torch.accelerator.is_available(), torch.backends.mps.is_available())


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.mix = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        rows, length, width = x.size()
        q, k, v = self.mix(x).split(width, dim=2)
        q, k, v = (part.view(rows, length, self.heads, width // self.heads).transpose(1, 2) for part in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(rows, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.attention = Attention(width, heads)
        self.inner = nn.ModuleDict({"up": nn.Linear(width, 4 * width), "down": nn.Linear(4 * width, width)})

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.inner.down(F.gelu(self.inner["up"](self.norms[1](x))))


class GPT(nn.Module):
    def __init__(self, letters, width=16, heads=2, depth=2):
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters, bias=False)
        self.letters.weight = self.head.weight  # tied
        self.apply(self.start)
        for name, p in self.named_parameters():
            if name.endswith("out.weight"):
                torch.nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(2 * depth))

    def start(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                torch.nn.init.zeros_(module.bias)

    def forward(self, ids, targets=None):
        places = torch.arange(0, ids.size(1), dtype=torch.long, device=ids.device)
        x = self.letters(ids) + self.places(places)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        if targets is None:
            return self.head(x[:, [-1], :]), None
        logits = self.head(x)
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

    def optimizer(self):
        known = {name: p for name, p in self.named_parameters() if p.requires_grad}
        groups = [
            {"params": [p for p in known.values() if p.dim() >= 2], "weight_decay": decay},
            {"params": [p for p in known.values() if p.dim() < 2], "weight_decay": 0.0},
        ]
        extra = (
            {"fused": True} if device == "cuda" and "fused" in inspect.signature(torch.optim.AdamW).parameters else {}
        )
        return torch.optim.AdamW(groups, lr=top_rate, betas=(0.9, 0.95), **extra)

    @torch.no_grad()
    def generate(self, ids, count, temperature=1.0, top_k=None):
        for _ in range(count):
            logits, _ = self(ids[:, -context:])
            logits = logits[:, -1, :] / temperature
            if top_k is not None:
                least, _ = torch.topk(logits, min(top_k, logits.size(-1)))
                logits[logits < least[:, [-1]]] = -float("Inf")
            ids = torch.cat((ids, torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)), dim=1)
        return ids


text = "the rule of the sum, the rule of the product, and the rule of the chain. " * 6
alphabet = sorted(set(text))
data = torch.tensor([alphabet.index(letter) for letter in text], dtype=torch.int64)
parts = {"train": data[: int(0.9 * len(data))], "held out": data[int(0.9 * len(data)) :]}


def batch(name):
    part = parts[name]
    starts = torch.randint(len(part) - context, (batch_size,))
    x = torch.stack([part[i : i + context] for i in starts])
    y = torch.stack([part[i + 1 : i + 1 + context] for i in starts])
    return x.to(device), y.to(device)


def rate(step):
    if step < warmup:
        return top_rate * (step + 1) / (warmup + 1)
    share = (step - warmup) / (steps - warmup)
    return low_rate + 0.5 * (1.0 + math.cos(math.pi * share)) * (top_rate - low_rate)


model = GPT(len(alphabet))
model.to(device)
scaler = torch.cuda.amp.GradScaler(enabled=(dtype == "float16"))
optimizer = model.optimizer()
if parallel:
    model = DDP(model)
print(
    f"{sum(p.numel() for p in model.parameters())} parameters",
    [len(group["params"]) for group in optimizer.param_groups],
)


@torch.no_grad()
def estimates():
    model.eval()
    found = {}
    for name in parts:
        losses = torch.zeros(3)
        for k in range(3):
            with around:
                losses[k] = model(*batch(name))[1].item()
        found[name] = losses.mean()
    model.train()
    return found


best = 1e9
for step in range(steps):
    for group in optimizer.param_groups:
        group["lr"] = rate(step)
    if step % 8 == 0:
        losses = estimates()
        print(f"step {step}: train {losses['train']:.5f}, held out {losses['held out']:.5f}")
        if losses["held out"] < best:
            best = losses["held out"]
            saved = io.BytesIO()
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "best": best}, saved)
    for _ in range(micro_steps):
        with around:
            loss = model(*batch("train"))[1] / micro_steps
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    print(f"{step} loss {loss.item() * micro_steps:.6f} norm {norm:.5f} rate {rate(step):.6f}")

saved.seek(0)
checkpoint = torch.load(saved)
model.load_state_dict(checkpoint["model"])
print(f"best {checkpoint['best']:.6f}")
written = model.generate(torch.zeros((2, 1), dtype=torch.long, device=device), 12, temperature=0.8, top_k=5)
print(["".join(alphabet[i] for i in row) for row in written.tolist()])
if parallel:
    destroy_process_group()
