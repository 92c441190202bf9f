"""Copy saved benchmark results into the docs: every number there comes from a file in results/benchmarks.

    python benchmarks/publish.py            # fill the docs
    python benchmarks/publish.py --check    # fail if they are out of step

A page names a file in a comment, <!-- results/benchmarks/NAME.txt -->, and the code block after it is replaced.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(<!-- (results/benchmarks/[\w.-]+) -->\n)```text\n.*?^```$", re.DOTALL | re.MULTILINE)


def filled(page: str) -> str:
    """The text of a page with every named result in its place."""

    def result(match: re.Match[str]) -> str:
        lines = [line.rstrip() for line in (ROOT / match[2]).read_text().strip().splitlines()]
        return f"{match[1]}```text\n" + "\n".join(lines) + "\n```"

    return BLOCK.sub(result, page)


def main() -> None:
    stale = []
    for path in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]):
        before = path.read_text()
        after = filled(before)
        if after != before:
            stale.append(str(path.relative_to(ROOT)))
            if "--check" not in sys.argv:
                path.write_text(after)
    if stale and "--check" in sys.argv:
        sys.exit(f"run python benchmarks/publish.py: out of step are {', '.join(stale)}")
    print("changed:", ", ".join(stale) or "nothing")


if __name__ == "__main__":
    main()
