"""Train a small Transformer to continue a nursery rhyme, character by character."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

STEPS = 100
TEXT = """this is the house that jack built. this is the malt that lay in the house that jack built.
this is the rat that ate the malt that lay in the house that jack built.
this is the cat that killed the rat that ate the malt that lay in the house that jack built.
"""
LETTERS = sorted(set(TEXT))
CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 24, 32, 4, 2, 8


class Block(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.fused = fused
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        if fused:
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
            self.out = nn.Linear(WIDTH, WIDTH)
        else:
            self.attention = nn.MultiheadAttention(WIDTH, HEADS, dropout=0.1, batch_first=True)
            self.register_buffer("mask", torch.triu(torch.ones(CONTEXT, CONTEXT), diagonal=1).bool())
        self.feed_forward = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.1)
        )

    def attend(self, x):
        batch, length, width = x.shape
        if not self.fused:
            return self.attention(x, x, x, attn_mask=self.mask[:length, :length], need_weights=False)[0]
        heads = [part.view(batch, length, HEADS, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)]
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*[Block(fused=number % 2 == 0) for number in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, len(LETTERS), bias=False)
        self.head.weight = self.letters.weight

    def forward(self, indices):
        places = torch.arange(indices.shape[1])
        x = self.letters(indices) + self.places(places)
        return self.head(self.norm(self.blocks(x)))


def initialize(module):
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, mean=0.0, std=0.1)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


def warm_up_and_decay(step):
    return min(1.0, (step + 1) / 10) * 0.5 * (1 + math.cos(math.pi * step / STEPS))


torch.manual_seed(2)
model = Transformer().double()
model.apply(initialize)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, betas=(0.9, 0.95))
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, warm_up_and_decay)
data = torch.tensor([LETTERS.index(letter) for letter in TEXT])

losses = []
for _ in range(STEPS):
    starts = torch.randint(len(data) - CONTEXT, (BATCH,))
    inputs = torch.stack([data[start : start + CONTEXT] for start in starts.tolist()])
    targets = torch.stack([data[start + 1 : start + CONTEXT + 1] for start in starts.tolist()])
    logits = model(inputs)
    loss = F.cross_entropy(logits.view(-1, len(LETTERS)), targets.view(-1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    losses.append(loss.item())

model.eval()
written = [LETTERS.index(letter) for letter in "this is"]
with torch.no_grad():
    for _ in range(30):
        logits = model(torch.tensor([written[-CONTEXT:]]))
        written.append(logits[0, -1].argmax().item())
text = "".join(LETTERS[index] for index in written)
print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}: {text!r}")
