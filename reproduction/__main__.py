"""``python -m reproduction``."""

from reproduction.publish import main

main()
