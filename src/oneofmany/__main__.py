"""``python -m oneofmany``."""

from oneofmany.cli import main

main()
