"""The steps of the equivariant network as CUDA kernels."""

from oneofmany.networks.equivariant.cuda.running import run_steps

__all__ = ["run_steps"]
