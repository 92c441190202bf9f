"""Relations a < b or a != b, indexed by variable."""

from __future__ import annotations

from oneofmany.compiled import njit

UNEQUAL = 2


@njit(cache=True, nogil=True)
def relations_by_variable(pairs, variables, unequal, related, relations):
    """Index pairs (a, b) by variable: ``related`` [R+1], ``relations`` [2M, 2] of (other variable, other is larger).

    If the pairs are a != b, the second number is UNEQUAL.
    """
    related[:] = 0
    for m in range(len(pairs)):
        if pairs[m, 0] >= 0:
            related[pairs[m, 0] + 1] += 1
            related[pairs[m, 1] + 1] += 1
    for variable in range(variables):
        related[variable + 1] += related[variable]
    fill = related.copy()
    for m in range(len(pairs)):
        a, b = pairs[m, 0], pairs[m, 1]
        if a >= 0:
            relations[fill[a], 0], relations[fill[a], 1] = b, UNEQUAL if unequal else 1
            fill[a] += 1
            relations[fill[b], 0], relations[fill[b], 1] = a, UNEQUAL if unequal else 0
            fill[b] += 1


@njit(cache=True, nogil=True)
def narrow_ranges(query, pairs, low, high):
    """Narrow the range low..high int64 [R] of every variable by its given and by pairs a < b; False if one is empty."""
    for variable in range(len(query)):
        if query[variable]:
            low[variable] = high[variable] = query[variable] - 1
    changed = True
    while changed:
        changed = False
        for m in range(len(pairs)):
            a, b = pairs[m, 0], pairs[m, 1]
            if a >= 0:
                if low[b] <= low[a]:
                    low[b] = low[a] + 1
                    changed = True
                if high[a] >= high[b]:
                    high[a] = high[b] - 1
                    changed = True
                if low[b] > high[b] or low[a] > high[a]:
                    return False
    return True
