"""What the tests of commands share."""

import pytest

from oneofmany import cli


@pytest.fixture
def call(capsys):
    """Run a command: (exit code, stdout, stderr)."""

    def run_command(*arguments):
        try:
            code = cli.run(list(map(str, arguments)))
        except SystemExit as stop:  # how tyro ends on --help and on bad arguments
            code = stop.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_command
