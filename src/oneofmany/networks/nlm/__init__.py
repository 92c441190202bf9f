"""The paper's NLM for N-Queens and Futoshiki, and its selector."""

from oneofmany.networks.nlm.network import NLM, nlm_for
from oneofmany.networks.nlm.selector import NLMSelector, nlm_selector_for

__all__ = ["NLM", "NLMSelector", "nlm_for", "nlm_selector_for"]
