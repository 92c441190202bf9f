"""Mutations of valid inputs: of bytes, of JSON values, and of tensor files with a new checksum."""

import json
import random
import re
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from oneofmany.tensor_files import HEADER, sealed, to_bytes

NUMBERS = ["0", "-1", "-0", "1e400", "NaN", "Infinity", "255", "256", "65536", "2147483648", "9223372036854775808"]
NUMBERS += ["1" + "0" * 30, "-" + "9" * 40, "1" * 5000, "0.5", "1e-400", "true", "null", "٣", "²"]
WORDS = [
    "",
    " ",
    "\0",
    "\r",
    "\x1b[2J",
    "\u202e",
    "\ud800",
    "é" * 9,
    "\U0001f600",
    "NaN",
    "../../x",
    "/dev/zero",
    "a" * 9000,
]
WORDS += [
    "[[[[",
    "{",
    '"',
    "\\",
    "#",
    "[Puzzle]",
    "query",
    "solution 1",
    "puzzle,solution",
    "r1c1<r1c2",
    "Q",
    "---+---",
    "|",
]
VALUES = [None, True, False, 0, -1, 1, 3, 255, 256, 2**31, 2**63, 10**30, -(10**400), 0.5, -0.0, 1e308, float("nan")]
VALUES += [
    float("inf"),
    "",
    "x",
    "\x1b]0;x\x07",
    "sha256:0",
    "sudoku",
    "nqueens",
    [],
    [[]],
    [1, "x"],
    {},
    {"a": {}},
    [None] * 99,
]
DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool"]

Draw = random.Random


def mutate_bytes(content: bytes, others: Sequence[bytes], draw: Draw) -> bytes:
    """Change bytes, one to four times."""
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        content = draw.choice(BYTES)(content, others, draw)[: 1 << 20]
    return content


def _place(content: bytes, draw: Draw) -> int:
    return draw.randrange(len(content) + 1)


def _flip(content: bytes, others: Sequence[bytes], draw: Draw) -> bytes:
    changed = bytearray(content)
    for _ in range(draw.choice((1, 2, 8)) if changed else 0):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _cut(content: bytes, others: Sequence[bytes], draw: Draw) -> bytes:
    return content[: _place(content, draw)]


def _delete(content: bytes, others: Sequence[bytes], draw: Draw) -> bytes:
    at = _place(content, draw)
    return content[:at] + content[at + draw.choice((1, 2, 9, 81)) :]


def _repeat(content: bytes, others: Sequence[bytes], draw: Draw) -> bytes:
    at = _place(content, draw)
    return content[:at] + content[at : at + draw.choice((1, 9, 81, 999))] * draw.choice((2, 3, 50)) + content[at:]


def _splice(content: bytes, others: Sequence[bytes], draw: Draw) -> bytes:
    other = draw.choice(others)
    return content[: _place(content, draw)] + other[_place(other, draw) :]


def _insert(content: bytes, others: Sequence[bytes], draw: Draw) -> bytes:
    at = _place(content, draw)
    return content[:at] + draw.choice(WORDS).encode("utf-8", "surrogatepass") + content[at:]


def _insert_random(content: bytes, others: Sequence[bytes], draw: Draw) -> bytes:
    at = _place(content, draw)
    return content[:at] + draw.randbytes(draw.choice((1, 4, 64))) + content[at:]


def _number(content: bytes, others: Sequence[bytes], draw: Draw) -> bytes:
    found = [match.span() for match in re.finditer(rb"-?\d+", content)]
    if not found:
        return content
    start, end = draw.choice(found)
    return content[:start] + draw.choice(NUMBERS).encode() + content[end:]


def _lines(content: bytes, others: Sequence[bytes], draw: Draw) -> bytes:
    lines = content.split(b"\n")
    draw.shuffle(lines)
    return b"\n".join(lines[: draw.randint(1, len(lines))])


def _random(content: bytes, others: Sequence[bytes], draw: Draw) -> bytes:
    if draw.random() < 0.5:
        return draw.randbytes(draw.choice((0, 1, 8, 300)))
    return "".join(chr(draw.choice((32, 127, 0x2600, 0x10000)) + draw.randrange(64)) for _ in range(50)).encode()


BYTES: list[Callable[[bytes, Sequence[bytes], Draw], bytes]] = [
    _flip,
    _cut,
    _delete,
    _repeat,
    _splice,
    _insert,
    _insert_random,
    _number,
    _lines,
    _random,
]


def mutate_value(value: object, draw: Draw) -> object:
    """A copy of a JSON value that is different in one place."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(list(value))
        act = draw.random()
        if act < 0.1:
            return {name: one for name, one in value.items() if name != key}
        if act < 0.15:
            return {(draw.choice(WORDS) if name == key else name): one for name, one in value.items()}
        return value | {key: mutate_value(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.8:
        at = draw.randrange(len(value))
        rest = [] if draw.random() < 0.2 else [mutate_value(value[at], draw)]
        return [*value[:at], *rest, *value[at + 1 :]]
    act = draw.random()
    if act < 0.1:
        return [value]
    if act < 0.15:
        return {"x": value}
    if act < 0.25 and isinstance(value, str):
        return mutate_bytes(value.encode(), [b"x"], draw).decode("utf-8", "replace")
    if act < 0.35 and isinstance(value, int | float):
        return draw.choice((-value, value + 1, value * 10**9, str(value)))
    return draw.choice(VALUES)


def mutate_json(content: bytes, others: Sequence[bytes], draw: Draw) -> bytes:
    """Change the value of a JSON text, or of one line of it, or its bytes."""
    if draw.random() < 0.4:
        return mutate_bytes(content, others, draw)
    if draw.random() < 0.01:
        return b"[" * 100_000
    lines = content.split(b"\n") if b"\n{" in content and content.startswith(b"{") else [content]
    try:
        at = draw.randrange(len(lines) - 1) if len(lines) > 1 else 0
        value = json.loads(lines[at])
    except ValueError:  # indented
        lines, at, value = [content], 0, json.loads(content)
    for _ in range(draw.choice((1, 1, 2, 5))):
        value = mutate_value(value, draw)
    lines[at] = json.dumps(value).encode()
    return b"\n".join(lines)


def mutate_tensors(content: bytes, others: Sequence[bytes], draw: Draw) -> bytes:
    """Change header or tensors of a file and give it the right checksum, or change its bytes."""
    if draw.random() < 0.3:
        return mutate_bytes(content, others, draw)
    header, tensors = _parts(content)
    if draw.random() < 0.6:
        changed = mutate_value(header, draw)
        header = changed if isinstance(changed, dict) else header
    else:
        tensors = _mutate_tensors(tensors, draw)
    about = {name: value for name, value in header.items() if name != "checksum"}
    with suppress(ValueError):  # numbers that JSON does not have
        header = sealed(about, tensors) if "checksum" in header else about
    return to_bytes(tensors, json.dumps(header))


def _parts(content: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    from safetensors.numpy import load

    length = int.from_bytes(content[:8], "little")
    return json.loads(json.loads(content[8 : 8 + length])["__metadata__"][HEADER]), load(content)


def _mutate_tensors(tensors: dict[str, np.ndarray], draw: Draw) -> dict[str, np.ndarray]:
    name = draw.choice(list(tensors))
    one, act = tensors[name], draw.randrange(8)
    if act == 0:
        return {other: tensor for other, tensor in tensors.items() if other != name}
    if act == 1:
        return tensors | {draw.choice(["x", name + "x", *tensors]): one}
    if act == 2:
        one = one.astype(draw.choice(DTYPES))
    elif act == 3:
        one = one.reshape(draw.choice(((-1,), (1, *one.shape), (*one.shape, 1), one.shape[::-1])))
    elif act == 4:
        one = one[: draw.randrange(len(one) + 1)] if one.ndim else one
    elif act == 5:
        one = np.concatenate([one, one]) if one.ndim else one
    elif act == 6:
        one = np.zeros((0, *one.shape[1:]), one.dtype)
    elif one.size:
        flat = one.flatten()
        raw = flat.view(np.uint8)
        for _ in range(draw.choice((1, 1, 9))):
            raw[draw.randrange(raw.size)] = draw.choice((0, 1, 127, 128, 255, draw.randrange(256)))
        one = flat.reshape(one.shape)
    return tensors | {name: np.ascontiguousarray(one)}
