"""How many test graphs of RandCSPBench our searches colour, by number of nodes and mean degree.

    python -m reproduction.solvable data    # writes solvable_graphs.json from colouring-K-size-N-test files in a folder

The files have the graphs for which an exhaustive search or a local search of limited length has found a colouring.
Sizes without a file are left out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from oneofmany.data import Dataset
from oneofmany.data.graphs import DEGREES, SIZES, degrees_of, edges_for
from oneofmany.files import write_json

FILE = Path(__file__).with_name("solvable_graphs.json")


def counted(data: Dataset, colours: int, nodes: int) -> list[int]:
    """The number of graphs of every mean degree of the benchmark."""
    edges = (degrees_of(data.query, data.relations) * nodes / 2).round()
    return [int((edges == edges_for(nodes, degree)).sum()) for degree in DEGREES[colours].tolist()]


def main(folder: str) -> None:
    """Count the graphs of all files in a folder, and write the counts with the checksums of the files."""
    found: dict[str, dict[str, dict[str, object]]] = {str(colours): {} for colours in DEGREES}
    for colours in DEGREES:
        for nodes in SIZES:
            file = Path(folder) / f"colouring-{colours}-size-{nodes}-test.safetensors"
            if file.exists():
                data = Dataset.load(file)
                own = {"graphs": counted(data, colours, nodes), "checksum": data.header()["checksum"]}
                found[str(colours)][str(nodes)] = own
    write_json(FILE, found)


def solvable_graphs() -> dict[int, dict[int, list[int]]]:
    """What the file says: colours -> nodes -> the number of graphs of every mean degree."""
    found = json.loads(FILE.read_text(encoding="utf-8"))
    return {int(colours): {int(nodes): own["graphs"] for nodes, own in of.items()} for colours, of in found.items()}


if __name__ == "__main__":
    main(*sys.argv[1:])
