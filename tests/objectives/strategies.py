"""Random batches for hypothesis."""

import hypothesis.strategies as st

from .cases import make_case

cases = st.builds(
    make_case,
    seed=st.integers(0, 2**31),
    T=st.sampled_from([None, 1, 2, 3]),
    B=st.integers(1, 4),
    K=st.integers(1, 5),
    R=st.integers(1, 4),
    V=st.integers(1, 4),
    scale=st.sampled_from([0.1, 2.0, 20.0]),
    listed=st.sampled_from([0.3, 0.7, 1.0]),
    with_variables=st.booleans(),
)
