"""The playground: one HTML file in which the bundled networks run, without a server."""

from oneofmany.playground.page import cached_playground, playground_html, write_playground

__all__ = ["cached_playground", "playground_html", "write_playground"]
