"""A training step of a small network, partly compiled by Inductor. Prints a digest of the weights."""
import hashlib
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch
from torch import nn

torch.manual_seed(1)
torch.use_deterministic_algorithms(True)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


width = 512
body = torch.compile(nn.Sequential(*[Block(width) for _ in range(4)]).cuda())
head = nn.Linear(width, 10).cuda()
parameters = [*body.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=1e-3, foreach=True)
x = torch.randn(4096, width, device="cuda")
y = torch.randint(0, 10, (4096,), device="cuda")
for step in range(30):
    loss = nn.functional.cross_entropy(head(body(x)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
h = hashlib.sha256()
for p in parameters:
    h.update(p.detach().cpu().numpy().tobytes())
print("loss", loss.item().hex(), h.hexdigest())
