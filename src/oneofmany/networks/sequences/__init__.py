"""Networks for sequences: an autoregressive encoder-decoder, CTC, and a selector over token log-likelihoods."""

from oneofmany.networks.sequences.network import CTCNetwork, Seq2SeqNetwork, SequenceNetwork
from oneofmany.networks.sequences.selector import TokenSelector

__all__ = ["CTCNetwork", "Seq2SeqNetwork", "SequenceNetwork", "TokenSelector"]
