"""Time and memory of a training step of every network, compared with its literal formulation in one run.

    python benchmarks/networks.py                          # all of them on one CPU thread
    python benchmarks/networks.py --device cuda            # all of them on a GPU
    python benchmarks/networks.py nlm --device cuda --batches 512 1024

The options after the names are those of networks_nlm.py, networks_rrn.py and networks_equivariant.py.
"""

import subprocess
import sys
from pathlib import Path

NETWORKS = ("nlm", "rrn", "equivariant")


def main() -> None:
    arguments = sys.argv[1:]
    if arguments and arguments[0] in ("-h", "--help"):
        print(__doc__)
        return
    first_option = next((i for i, a in enumerate(arguments) if a.startswith("-")), len(arguments))
    names, options = arguments[:first_option], arguments[first_option:]
    for name in names:
        if name not in NETWORKS:
            sys.exit(f"expected networks among {', '.join(NETWORKS)}, got {name!r}")
    for name in names or NETWORKS:
        print(f"== {name}", flush=True)
        subprocess.run([sys.executable, Path(__file__).with_name(f"networks_{name}.py"), *options], check=True)


if __name__ == "__main__":
    main()
