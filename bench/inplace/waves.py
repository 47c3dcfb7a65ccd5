"""JAX: a few steps compiled by XLA. Prints a digest."""
import hashlib
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(a, b):
    lap = jnp.roll(a, 1, 0) + jnp.roll(a, -1, 0) + jnp.roll(a, 1, 1) + jnp.roll(a, -1, 1) - 4 * a
    return 2 * a - b + 0.2 * lap - 0.01 * jnp.sin(a), a


a = jnp.asarray(np.random.default_rng(3).standard_normal((2048, 2048), dtype=np.float32))
b = a
for _ in range(50):
    a, b = step(a, b)
print(hashlib.sha256(np.asarray(a).tobytes()).hexdigest())
