"""The audit of the locked packages says what it found, and also what it could not look up."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(name="audit")
def _audit():
    specification = importlib.util.spec_from_file_location("audit", ROOT / "tools" / "audit.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def package(name, *, vulnerabilities=(), skipped=False):
    if skipped:
        return {"name": name, "skip_reason": "not found"}
    found = [{"id": one, "fix_versions": ["2.0"]} for one in vulnerabilities]
    return {"name": name, "version": "1.0", "vulns": found}


@pytest.mark.parametrize(
    ("packages", "code", "text"),
    [
        ([package("a"), package("b")], 0, "2 packages looked up, no vulnerability known"),
        ([package("a", vulnerabilities=["PYSEC-1"])], 1, "a 1.0: PYSEC-1, mended in 2.0"),
        ([package("a"), package("b", skipped=True)], 2, "not done: 1 of 2 packages were not"),
        ([package("a", vulnerabilities=["X"]), package("b", skipped=True)], 1, "not done: 1 of 2"),
    ],
)
def test_what_is_known_and_what_is_not(audit, packages, code, text):
    found, lines = audit.verdict({"dependencies": packages})
    assert found == code
    assert text in "\n".join(lines)


def test_a_program_that_fails_is_not_a_clean_audit(audit, tmp_path, capsys):
    program = tmp_path / "pip-audit"
    program.write_text("#!/bin/sh\necho no network >&2\nexit 1\n")
    program.chmod(0o755)
    assert audit.main([str(program), "test.lock"]) == 2
    assert capsys.readouterr().out == "test.lock: not done: pip-audit failed: no network\n"


@pytest.mark.parametrize("name", ["test", "floor"])
def test_every_locked_package_has_its_version_and_its_hashes(name):
    lines = (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8").splitlines()
    pinned = [i for i, line in enumerate(lines) if line and not line.startswith((" ", "#"))]
    assert len(pinned) > 10
    for i in pinned:
        assert "==" in lines[i], lines[i]
        assert "--hash=sha256:" in lines[i + 1], lines[i]
    assert not [line for line in lines if "://" in line]
