"""Ctrl-C while ``lemll`` starts."""

import pytest
from support import in_process

START = """
import signal, sys

class Hook:
    def find_spec(self, name, *rest):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Hook())
sys.argv = ["lemll", "--help"]
from lemll.cli import main
main()
"""


@pytest.mark.parametrize("module", ["typer", "lemll.cli.app", "rich"])
def test_an_interrupt_during_imports_is_a_line(module):
    done = in_process(START.format(module=module), check=False)
    assert (done.returncode, done.stderr) == (130, "lemll: stopped\n")


def test_an_ignored_interrupt_stays_ignored():
    ignored = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    done = in_process(ignored + START.format(module="lemll.cli.app"), check=False)
    assert done.returncode == 0
    assert "Usage" in done.stdout
