"""``oneofmany playground`` and ``oneofmany play``: the page in which the bundled networks run."""

from __future__ import annotations

from pathlib import Path

from oneofmany.cli.options import Flag


def playground(out: Path, force: Flag = False) -> None:
    """Write the playground: one HTML file in which the networks answer your boards, without a server.

    Example: oneofmany playground --out playground.html

    Args:
        out: the HTML file to write.
        force: overwrite an existing file.
    """
    from oneofmany.playground import write_playground

    write_playground(out, force=force)
    print(out)


def play() -> None:
    """Open the playground in the browser, and print the path of its file.

    Example: oneofmany play
    """
    import webbrowser

    from oneofmany.cli.terminal import say
    from oneofmany.playground import cached_playground

    path = cached_playground()
    print(path, flush=True)
    if not webbrowser.open(path.as_uri()):
        say("no browser can be opened here: open the file in one")
