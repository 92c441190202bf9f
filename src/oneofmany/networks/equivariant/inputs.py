"""Input features of the equivariant networks, and checks of a batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from oneofmany.networks.equivariant.blocks import block_tables, shared_tables
from oneofmany.networks.equivariant.rules import UNEQUAL
from oneofmany.networks.equivariant.tables import RuleTables
from oneofmany.networks.kernels import takes_cpu
from oneofmany.problems import Batch


def given_feature(query: Tensor, values: int) -> Tensor:
    """Return float [C, B] from a query int64 [B, R]: 1 if the choice is given.

    There is no mark for the choices that a given excludes; the rules imply them. Marking the other values of its
    variable would break the symmetry between rows and columns of a chess board.
    """
    here = query.t()[:, None] == torch.arange(1, values + 1, device=query.device)[:, None]
    return here.flatten(0, 1).float()


def flag_features(batch: Batch) -> list[Tensor]:
    """Return two features [C, B]: the choice's cell is the first of a pair and the larger one; ... the smaller one."""
    problem, query = batch.problem, batch.query
    if batch.relations is None:
        return [torch.zeros(problem.choices, len(query), device=query.device)] * 2
    a, b = batch.relations.unbind(-1)
    cells = torch.arange(problem.variables, device=query.device)[:, None, None]
    larger = ((b < a)[None] & (b[None] == cells)).any(-1)
    smaller = ((a < b)[None] & (a[None] == cells)).any(-1)
    return [flag.float().repeat_interleave(problem.values, 0) for flag in (larger, smaller)]


def check_tensor(name: str, value: Tensor | None, shape: tuple[int, ...], device: torch.device) -> None:
    """Raise ValueError unless value is None or a floating-point tensor of this shape on this device."""
    if value is None:
        return
    if tuple(value.shape) != shape or not value.is_floating_point():
        raise ValueError(f"{name}: expected floating point {list(shape)}, got {value.dtype} {list(value.shape)}")
    if value.device != device:
        raise ValueError(f"{name}: expected the query's device {device}, got {value.device}")


def checked_tables(
    network: nn.Module, batch: Batch, kinds: Sequence[str], relations_as_rules: bool, sums: Sequence[str] = ()
) -> RuleTables:
    """Check a batch against a network with weights for these kinds and return the tables of its rules.

    If the queries bring rules of their own or relations a != b, these are tables of blocks, one for each query. So they
    are with relations a < b where kernels know these as rules only (CPUs).
    """
    query, relations, problem = batch.query, batch.relations, batch.problem
    if query.ndim != 2 or query.shape[1] != problem.variables:
        raise ValueError(f"query: expected [B, {problem.variables}] for {problem}, got {list(query.shape)}")
    if query.dtype != torch.int64:
        raise ValueError(f"query: expected int64, got {query.dtype}")
    weight = next(network.parameters())
    device = weight.device
    if query.device != device:
        raise ValueError(f"query: expected the network's device {device}, got {query.device}")
    if relations is not None:
        if relations.ndim != 3 or relations.shape[0] != len(query) or relations.shape[2] != 2:
            raise ValueError(f"relations: expected [{len(query)}, M, 2], got {list(relations.shape)}")
        if problem.relation_kind is None and relations.shape[1]:
            raise ValueError(f"relations: expected none for {problem}, got {list(relations.shape)}")
        if relations.shape[1] and problem.relation != "<" and not relations_as_rules:
            raise ValueError(f"relations: {UNEQUAL}")
        if relations.dtype != torch.int64 or relations.device != device:
            raise ValueError(
                f"relations: expected int64 on the network's device {device}, got {relations.dtype} on "
                f"{relations.device}"
            )
    as_blocks = problem.relation != "<" or (relations_as_rules and takes_cpu(weight))
    if batch.own is not None or (relations is not None and relations.shape[1] > 0 and as_blocks):
        tables = block_tables(batch, relations_as_rules)
    else:
        tables = shared_tables(problem, device)
    present = [kind for kind, _ in tables.kinds]
    if relations_as_rules and relations is not None and relations.shape[1]:
        present.append(str(problem.relation_kind))
    unknown = [kind for kind in dict.fromkeys(present) if kind not in kinds]
    unknown += [] if tables.sums is None else [kind for kind in tables.sums.kinds if kind not in sums]
    if unknown:
        raise ValueError(f"problem: expected rules of the kinds {list(kinds)}, got {problem} with {unknown}")
    return tables
