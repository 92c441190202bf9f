"""A recurrent Transformer over variables, which is given no rules, and its selector."""

from oneofmany.networks.transformer.network import TransformerNetwork
from oneofmany.networks.transformer.selector import TransformerSelector

__all__ = ["TransformerNetwork", "TransformerSelector"]
