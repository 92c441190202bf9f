"""A search over 9x9 Sudokus with singles, or also with locked candidates and pairs: the search that rates puzzles.

A state is a uint32 array [STATE]. Word 16 * band + digit holds the places that are open to a digit in three rows: bit
10 * row + column. The tenth bit of a row is a guard that is always 0, so that rows can be subtracted in one operation.
Lanes 9 to 15 of a band are padding: all places are open, so no rule ever applies to them. Words 48 to 50 hold the cells
without a value. One loop over the lanes finds the hidden singles of all digits, and the compiler makes vectors of it.
"""

from __future__ import annotations

import numpy as np

from oneofmany.compiled import njit
from oneofmany.exact.bits import lowest_bit, number_of_bits
from oneofmany.exact.random import below

STATE = 51
DEPTH = 82
FAILED = -1
SOLVED = 0
STABLE = 1
ENDLESS = 1 << 62
"""A number of values that no search reaches."""
ROW = np.uint32(0x1FF)
CELLS = np.uint32(0x1FF | 0x1FF << 10 | 0x1FF << 20)
LOW = np.uint32(1 | 1 << 10 | 1 << 20)
GUARDS = np.uint32(LOW << 9)
BOXES = np.uint32(0b001001001)
BAND = np.arange(81, dtype=np.int64) // 27
BIT = (np.uint32(1) << (10 * (np.arange(81) % 27 // 9) + np.arange(81) % 9).astype(np.uint32)).astype(np.uint32)


def _peers() -> np.ndarray:
    """Return uint32 [81, 3]: in each band the cells that share a row, a column or a box with a cell, without itself."""
    shared = np.zeros((81, 81), bool)
    for unit in UNITS:
        shared[np.ix_(unit, unit)] = True
    np.fill_diagonal(shared, False)
    return np.stack([(shared * BIT * (band == BAND)).sum(1) for band in range(3)], 1).astype(np.uint32)


def _units() -> np.ndarray:
    """Return int64 [27, 9]: the cells of the rows, the columns and the boxes."""
    cells = np.arange(81).reshape(9, 9)
    boxes = cells.reshape(3, 3, 3, 3).swapaxes(1, 2).reshape(9, 9)
    return np.concatenate([cells, cells.T, boxes])


def _meetings() -> np.ndarray:
    """Return int64 [M, 4]: two units that share three cells, and as bits which cells of each they share."""
    shared = (UNITS[:, None, :, None] == UNITS[None, :, None, :]).any(3)  # unit, other unit, cell of the unit
    bits = (shared << np.arange(9)).sum(2)
    pairs = np.argwhere(shared.sum(2) == 3)
    return np.stack([*pairs.T, bits[pairs[:, 0], pairs[:, 1]], bits[pairs[:, 1], pairs[:, 0]]], 1)


UNITS = _units()
PEERS = _peers()
MEETINGS = _meetings()


@njit(cache=True, nogil=True)
def put(state, cell, digit):
    """Put a digit 0..8 into a cell; returns False if it is not open to that digit."""
    band, bit = BAND[cell], BIT[cell]
    if not state[16 * band + digit] & bit:
        return False
    for lane in range(9):
        state[16 * band + lane] &= ~bit
    for other in range(3):
        state[16 * other + digit] &= ~PEERS[cell, other]
    state[16 * band + digit] |= bit
    state[48 + band] &= ~bit
    return True


@njit(cache=True, nogil=True)
def _cell_of(band, bit):
    """Return the index of a cell from its band and the number of its bit."""
    return 27 * band + 9 * (bit // 10) + bit % 10


@njit(cache=True, nogil=True)
def _rows(x):
    """Return the places that are the only one of their row, and the guards of empty rows."""
    # x & (x - 1) is 0 if at most one bit is set. The guards keep the borrow inside of a row.
    less = (x | GUARDS) - LOW
    many = ((x & less) + CELLS) & GUARDS
    return x & ~(many - (many >> np.uint32(9))), ~less & GUARDS


@njit(cache=True, nogil=True)
def _columns(x):
    """Return the columns with at least one place in a band, and those with at least two."""
    a, b, c = x & ROW, (x >> np.uint32(10)) & ROW, x >> np.uint32(20)
    return a | b | c, (a & b) | (c & (a | b))


@njit(cache=True, nogil=True)
def _boxes(x, one, two, columns):
    """Return the places that are the only one of their box or column, and the empty boxes, from a band's columns."""
    p, q = one >> np.uint32(1), one >> np.uint32(2)
    several = two | two >> np.uint32(1) | two >> np.uint32(2) | (one & p) | (q & (one | p))
    some = one | p | q
    box = some & ~several & BOXES
    units = columns | box | box << np.uint32(1) | box << np.uint32(2)
    return x & (units | units << np.uint32(10) | units << np.uint32(20)), ~some & BOXES


@njit(cache=True, nogil=True)
def _hidden(state, found):
    """Write the hidden singles of every lane to uint32 [48]; returns whether a row, column or box lacks a digit."""
    bad = np.uint32(0)
    for lane in range(16):
        x0, x1, x2 = state[lane], state[16 + lane], state[32 + lane]
        row0, empty0 = _rows(x0)
        row1, empty1 = _rows(x1)
        row2, empty2 = _rows(x2)
        one0, two0 = _columns(x0)
        one1, two1 = _columns(x1)
        one2, two2 = _columns(x2)
        one = one0 | one1 | one2
        columns = one & ~(two0 | two1 | two2 | (one0 & one1) | (one2 & (one0 | one1)))
        box0, lack0 = _boxes(x0, one0, two0, columns)
        box1, lack1 = _boxes(x1, one1, two1, columns)
        box2, lack2 = _boxes(x2, one2, two2, columns)
        found[lane], found[16 + lane], found[32 + lane] = row0 | box0, row1 | box1, row2 | box2
        bad |= empty0 | empty1 | empty2 | lack0 | lack1 | lack2 | (one ^ ROW)
    return bad != 0


@njit(cache=True, nogil=True)
def singles(state, found):
    """Put naked and hidden singles until there are none: FAILED, SOLVED, or STABLE. ``found``: uint32 [48], scratch.

    The order does not matter: what can be removed stays removable, so every order ends in the same state or fails.
    """
    while True:
        if _hidden(state, found):
            return FAILED
        changed = False
        for band in range(3):
            once = twice = np.uint32(0)
            for lane in range(9):
                word = state[16 * band + lane]
                twice |= once & word
                once |= word
            blank = state[48 + band]
            if blank & ~once:
                return FAILED
            naked = ~twice
            for lane in range(9):
                word = (found[16 * band + lane] | (state[16 * band + lane] & naked)) & blank
                while word:
                    changed = True
                    if not put(state, _cell_of(band, np.int64(lowest_bit(np.uint64(word)))), lane):
                        return FAILED
                    word &= word - np.uint32(1)
        if not changed:
            return STABLE if state[48] | state[49] | state[50] else SOLVED


@njit(cache=True, nogil=True)
def _remove(state, cell, digit):
    """Close a cell to a digit; returns whether it was open."""
    word = 16 * BAND[cell] + digit
    was_open = state[word] & BIT[cell] != 0
    state[word] &= ~BIT[cell]
    return was_open


@njit(cache=True, nogil=True)
def eliminate(state):
    """Remove candidates once by locked candidates, naked pairs and hidden pairs; returns whether there were any.

    Repeated until it returns False, it ends in the same state for any order, as singles do.
    """
    digits = np.zeros(81, np.int64)  # the digits that are open to a cell, as bits
    places = np.zeros((27, 9), np.int64)  # the cells of a unit that are open to a digit, as bits
    for unit in range(27):
        for slot in range(9):
            cell = UNITS[unit, slot]
            for digit in range(9):
                if state[16 * BAND[cell] + digit] & BIT[cell]:
                    digits[cell] |= 1 << digit
                    places[unit, digit] |= 1 << slot
    changed = False
    for i in range(len(MEETINGS)):
        unit, other, here, there = MEETINGS[i]
        for digit in range(9):
            # All places of the digit in one unit are shared, so the other unit has it there too.
            if not places[unit, digit] & ~here and places[other, digit] & ~there:
                for slot in range(9):
                    if (places[other, digit] & ~there) >> slot & 1:
                        changed |= _remove(state, UNITS[other, slot], digit)
    for unit in range(27):
        for a in range(9):
            for b in range(a):
                naked = digits[UNITS[unit, a]]
                if naked == digits[UNITS[unit, b]] and number_of_bits(np.uint64(naked)) == 2:
                    for slot in range(9):
                        for digit in range(9):
                            if slot != a and slot != b and naked >> digit & 1:
                                changed |= _remove(state, UNITS[unit, slot], digit)
                hidden = places[unit, a]  # here a and b are digits
                if hidden == places[unit, b] and number_of_bits(np.uint64(hidden)) == 2:
                    for slot in range(9):
                        for digit in range(9):
                            if digit != a and digit != b and hidden >> slot & 1:
                                changed |= _remove(state, UNITS[unit, slot], digit)
    return changed


@njit(cache=True, nogil=True)
def _fewest(state, fewest):
    """Write the blank cells with the fewest candidates to uint32 [3]."""
    for number in range(2, 10):
        some = np.uint32(0)
        for band in range(3):
            # The number of candidates of all cells at once, one word for each binary digit.
            c0 = c1 = c2 = c3 = np.uint32(0)
            for lane in range(9):
                carry = state[16 * band + lane]
                c0, carry = c0 ^ carry, c0 & carry
                c1, carry = c1 ^ carry, c1 & carry
                c2, carry = c2 ^ carry, c2 & carry
                c3 |= carry
            equal = state[48 + band]
            equal &= c0 if number & 1 else ~c0
            equal &= c1 if number & 2 else ~c1
            equal &= c2 if number & 4 else ~c2
            equal &= c3 if number & 8 else ~c3
            fewest[band] = equal
            some |= equal
        if some:
            return


@njit(cache=True, nogil=True)
def _draw_cell(state, fewest, random):
    """Draw one of the blank cells with the fewest candidates."""
    _fewest(state, fewest)
    number = np.int64(0)
    for band in range(3):
        number += np.int64(number_of_bits(np.uint64(fewest[band])))
    skip = below(random, number)
    for band in range(3):
        word = fewest[band]
        while word:
            if skip == 0:
                return _cell_of(band, np.int64(lowest_bit(np.uint64(word))))
            skip -= 1
            word &= word - np.uint32(1)
    return -1


@njit(cache=True, nogil=True)
def search(stack, limit, most, random, grids, pairs):
    """Search from the state ``stack[0]`` for up to ``limit`` solutions; returns values tried and solutions found.

    After all singles, and locked candidates and pairs too if ``pairs``, it branches on a random cell among those
    with the fewest candidates, and tries its values in random order. It gives up after ``most`` values: the number
    of values is then more than ``most``. stack: uint32 [DEPTH, STATE], scratch. random: uint64 [1], the state of
    the generator. grids: uint8 [G, 81], filled with the first solutions found, values 1..9.
    """
    found = np.empty(48, np.uint32)
    fewest = np.empty(3, np.uint32)
    cells = np.empty(DEPTH, np.int64)
    left = np.empty(DEPTH, np.uint32)
    level = tried = solutions = 0
    while True:
        state = stack[level]
        outcome = singles(state, found)
        while pairs and outcome == STABLE and eliminate(state):
            outcome = singles(state, found)
        if outcome == STABLE:
            cell = _draw_cell(state, fewest, random)
            cells[level] = cell
            left[level] = 0
            for digit in range(9):
                if state[16 * BAND[cell] + digit] & BIT[cell]:
                    left[level] |= np.uint32(1) << np.uint32(digit)
        else:
            if outcome == SOLVED:
                if solutions < len(grids):
                    _write(state, grids[solutions])
                solutions += 1
                if solutions == limit:
                    return tried, solutions
            level -= 1
            while level >= 0 and not left[level]:
                level -= 1
            if level < 0:
                return tried, solutions
        tried += 1
        if tried > most:
            return tried, solutions
        rest = left[level]
        for _ in range(below(random, np.int64(number_of_bits(np.uint64(rest))))):
            rest &= rest - np.uint32(1)
        digit = np.int64(lowest_bit(np.uint64(rest)))
        left[level] &= ~(np.uint32(1) << np.uint32(digit))
        stack[level + 1] = stack[level]
        put(stack[level + 1], cells[level], digit)
        level += 1


@njit(cache=True, nogil=True)
def _write(state, grid):
    for band in range(3):
        for digit in range(9):
            word = state[16 * band + digit]
            while word:
                grid[_cell_of(band, np.int64(lowest_bit(np.uint64(word))))] = digit + 1
                word &= word - np.uint32(1)


@njit(cache=True, nogil=True)
def start(puzzle, state):
    """Make the state of a puzzle uint8 [81]; returns False if its givens contradict each other."""
    state[:] = CELLS
    consistent = True
    for cell in range(81):
        if puzzle[cell]:
            consistent &= put(state, cell, np.int64(puzzle[cell]) - 1)
    return consistent
