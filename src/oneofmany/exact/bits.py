"""Machine instructions on the bits of a word, for compiled functions."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _unary_intrinsic(emit: Any) -> Any:
    """Return a function of one uint64 that compiles to a single machine instruction."""

    @intrinsic
    def function(typing_context: Any, word: Any = None) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return emit(builder, arguments[0])

        return types.uint64(types.uint64), generate

    return function


lowest_bit = _unary_intrinsic(lambda builder, word: builder.cttz(word, ir.Constant(ir.IntType(1), 1)))
number_of_bits = _unary_intrinsic(lambda builder, word: builder.ctpop(word))
