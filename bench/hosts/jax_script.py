"""A function of JAX, compiled by XLA; the digest of its result."""

import hashlib

import jax
import jax.numpy as jnp
import numpy


@jax.jit
def step(x):
    y = jnp.tanh(x) * jnp.exp(-x * x)
    return jnp.cumsum(y, axis=1) + jnp.sort(x, axis=1) + y.sum(axis=0)


x = jax.random.uniform(jax.random.PRNGKey(1), (512, 512))
print('{"digest": "%s"}' % hashlib.sha256(numpy.asarray(step(x)).tobytes()).hexdigest()[:16])
