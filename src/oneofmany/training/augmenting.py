"""Augmentation: every query of a batch, with its listed solutions, becomes a random symmetric form of itself.

N-Queens has the eight rotations and reflections of the board. Sudoku has permutations of values, of bands and stacks,
of rows and columns within them, and the transposition if its boxes are square. Futoshiki has permutations of rows, the
mirror image of every row, and the reversal of values; inequalities between neighbours in a row stay such.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from oneofmany.problems import Batch, Problem


def draw_augmentation(batch: int, problem: Problem, generator: torch.Generator) -> Tensor:
    """Draw the uniform numbers [B, 5 N + 3] for one call of ``augment`` on a problem of size N."""
    return torch.rand(batch, 5 * problem.size + 3, generator=generator, device=generator.device)


def augment(batch: Batch, uniform: Tensor) -> Batch:
    """The batch with a random symmetry applied to each query and its listed solutions.

    Args:
        batch: queries with their listed solutions.
        uniform: [B, 5 N + 3], drawn by ``draw_augmentation``.
    """
    problem = batch.problem
    R, V = problem.variables, problem.values
    places, reverses = SYMMETRIES[problem.task](problem, uniform)  # [B, C] choices, [B] bool
    to_choice = places.view(len(batch), R, V)
    own = torch.arange(R, device=uniform.device) * V

    def moved(values: Tensor) -> tuple[Tensor, Tensor]:
        """Variables and values 0..V-1 of permuted choices, from values [B, .., R]."""
        choice = (own + values).flatten(1)
        found = to_choice.flatten(1).gather(1, choice).view(values.shape)
        return found // V, found % V

    variable, value = moved(batch.solutions.clamp(0, V - 1))
    solutions = torch.zeros_like(batch.solutions).scatter(-1, variable, value)
    variable, value = moved((batch.query - 1).clamp(min=0))
    # Blanks go to a column of their own, which is cut off.
    variable = torch.where(batch.query > 0, variable, R)
    query = batch.query.new_zeros(len(batch), R + 1).scatter(1, variable, value + 1)[:, :R]
    relations = batch.relations
    if relations is not None:
        real = relations >= 0
        ends = to_choice[:, :, 0].div(V, rounding_mode="floor")
        mapped = ends.gather(1, relations.clamp(min=0).flatten(1)).view(relations.shape)
        mapped = torch.where(reverses[:, None, None], mapped.flip(-1), mapped)
        relations = torch.where(real, mapped, -1)
    return replace(batch, query=query, solutions=solutions, relations=relations)


Symmetry = Callable[[Problem, Tensor], tuple[Tensor, Tensor]]
"""A problem and uniform numbers [B, 5 N + 3] -> the new choice of every choice, int64 [B, C], and whether the order of
the values is reversed, bool [B]."""


def _nqueens(problem: Problem, uniform: Tensor) -> tuple[Tensor, Tensor]:
    n = problem.size
    row, column = _grid(n, uniform)
    flips = uniform[:, :3, None, None] < 0.5
    row = torch.where(flips[:, 0], n - 1 - row, row)
    column = torch.where(flips[:, 1], n - 1 - column, column)
    row, column = torch.where(flips[:, 2], column, row), torch.where(flips[:, 2], row, column)
    return (row * n + column).flatten(1), torch.zeros_like(flips[:, 0, 0, 0])


def _sudoku(problem: Problem, uniform: Tensor) -> tuple[Tensor, Tensor]:
    n, high, wide = problem.size, problem.options["box_rows"], problem.options["box_columns"]
    parts = uniform[:, : 5 * n].unflatten(1, (5, n)).unbind(1)
    rows, columns = _banded(parts[0], parts[1], high), _banded(parts[2], parts[3], wide)
    values = parts[4].argsort(1)
    row, column = rows[:, :, None].expand(-1, n, n), columns[:, None, :].expand(-1, n, n)
    turned = ((uniform[:, 5 * n] < 0.5) & (high == wide))[:, None, None]
    row, column = torch.where(turned, column, row), torch.where(turned, row, column)
    return _choices(row * n + column, values), torch.zeros_like(turned[:, 0, 0])


def _banded(within: Tensor, bands: Tensor, size: int) -> Tensor:
    """The new places [B, N] of rows that are permuted within bands of a size, and with their bands."""
    inner = within.unflatten(1, (-1, size)).argsort(-1)
    return (bands[:, : inner.shape[1]].argsort(1)[:, :, None] * size + inner).flatten(1)


def _choices(cells: Tensor, values: Tensor) -> Tensor:
    """The new choices [B, C] from new cells [B, N, N] and new values [B, V]."""
    return (cells.flatten(1)[:, :, None] * values.shape[1] + values[:, None, :]).flatten(1)


def _futoshiki(problem: Problem, uniform: Tensor) -> tuple[Tensor, Tensor]:
    n = problem.size
    _, column = _grid(n, uniform)
    rows = uniform[:, :n].argsort(1)[:, :, None].expand(-1, n, n)
    mirrored, reverses = uniform[:, 5 * n] < 0.5, uniform[:, 5 * n + 1] < 0.5
    column = torch.where(mirrored[:, None, None], n - 1 - column, column)
    values = torch.arange(n, device=uniform.device).expand(len(uniform), n)
    values = torch.where(reverses[:, None], n - 1 - values, values)
    return _choices(rows * n + column, values), reverses


def _grid(n: int, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Rows and columns [B, N, N] of the cells of a board."""
    place, shape = torch.arange(n, device=uniform.device), (len(uniform), n, n)
    return place[:, None].expand(shape), place.expand(shape)


SYMMETRIES: dict[str, Symmetry] = {"nqueens": _nqueens, "futoshiki": _futoshiki, "sudoku": _sudoku}
"""Task -> its symmetries."""
