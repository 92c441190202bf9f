"""Refuses a commit message whose subject has more than 72 characters: ``python .ci/subject.py FILE``."""

import re
import sys
from pathlib import Path

LIMIT = 72


def subject(message: str) -> str:
    """The subject as git shows it: the first paragraph in one line, without comments and the prefixes of autosquash."""
    text = message.split("\n# ------------------------ >8 ------------------------\n")[0]
    lines = [line.strip() for line in text.splitlines() if not line.startswith("#")]
    first = "\n".join(lines).strip().split("\n\n")[0].replace("\n", " ")
    return re.sub(r"^((fixup|squash|amend)! )+", "", first)


def main(path: str) -> int:
    """Return 1 and say why where the subject is too long."""
    found = subject(Path(path).read_text(encoding="utf-8"))
    if len(found) <= LIMIT:
        return 0
    print(f"the subject has {len(found)} characters, at most {LIMIT} are allowed: {found}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
