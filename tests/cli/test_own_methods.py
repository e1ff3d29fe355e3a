"""Methods of a researcher: imported from a protocol's folder only by who trusts it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from lemll.cli.app import app
from lemll.exceptions import ProtocolError
from lemll.lab import Protocol, code, methods
from lemll.lab import code as imports
from lemll.lab.code import import_from_folder
from lemll.lab.execute import run_cell

pytestmark = pytest.mark.slow

LEMLL = str(Path(sys.executable).with_name("lemll"))
METHODS = """
from pathlib import Path

from lemll import BinaryRelevance
from lemll.enhancers import LogicalEnhancer
from lemll.lab import Method, register

(Path(__file__).parent / "ran").touch()


class MyLearner(BinaryRelevance):
    pass


class MyEnhancer(LogicalEnhancer):
    pass


register(Method("Mine {name}", "learner", MyLearner, summary="my learner"))
register(Method("Mine {name}", "enhancer", MyEnhancer, summary="my enhancer"))
"""
PROTOCOL = """
imports = ["{module}"]
experiment = "prediction"
datasets = ["digit-tags"]
control = "Mine {name}"
methods = ["Mine {name}", "BR"]
[splits]
kind = "halves"
n_splits = 1
"""


def folder(path, name):
    module = f"own_methods_{name}"
    (path / f"{module}.py").write_text(METHODS.format(name=name), encoding="utf-8")
    (path / "p.toml").write_text(PROTOCOL.format(module=module, name=name), encoding="utf-8")
    return path / "p.toml"


@pytest.fixture(autouse=True)
def _nothing_stays(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(methods, "_METHODS", dict(methods._METHODS))
    monkeypatch.setattr(imports, "_FOLDERS", set())


def test_a_protocol_does_not_run_code_by_itself(tmp_path):
    file = folder(tmp_path, "a")
    with pytest.raises(ProtocolError, match="own_methods_a.*can run any code.*--trust-imports"):
        Protocol.from_toml(file)
    for command in ("run", "status", "table", "report", "verify"):
        done = CliRunner().invoke(app, ["bench", command, str(file)])
        assert done.exit_code != 0
        assert isinstance(done.exception, ProtocolError)
    assert not (tmp_path / "ran").exists()
    assert str(tmp_path) not in sys.path
    protocol = Protocol.from_toml(file, trust_imports=True)
    assert (tmp_path / "ran").exists()
    assert [spec.label for spec in protocol.methods] == ["Mine a", "BR"]


def test_a_trusted_protocol_runs_in_worker_processes_and_says_what_is_next(tmp_path):
    folder(tmp_path, "b")
    run = [LEMLL, "bench", "run", "p.toml", "--trust-imports"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 cells done" in done.stdout
    assert "next: lemll bench table p.toml\n" in done.stdout
    table = [LEMLL, "bench", "table", "p.toml", "--format", "latex"]
    done = subprocess.run([*table, "-o", "t.tex"], cwd=tmp_path, capture_output=True, text=True,
                          check=True)  # fmt: skip
    assert "wrote t.tex" in done.stdout
    text = (tmp_path / "t.tex").read_text(encoding="utf-8")
    assert r"\caption{Average precision (higher is better).}" in text
    assert r"\textbf{" in text
    assert r"\label{tab:average-precision}" in text
    assert "The best value of each row is bold." in text


def test_trust_is_remembered_until_a_module_changes(tmp_path):
    file = folder(tmp_path, "e")
    (tmp_path / "helper_e.py").write_text("VALUE = 1", encoding="utf-8")
    Protocol.from_toml(file, trust_imports=True)
    assert len(Protocol.from_toml(file).methods) == 2
    other = tmp_path / "copy.toml"
    other.write_bytes(file.read_bytes())
    with pytest.raises(ProtocolError, match="you have not trusted them"):
        Protocol.from_toml(other)
    (tmp_path / "helper_e.py").write_text("VALUE = 2", encoding="utf-8")
    with pytest.raises(ProtocolError, match="or they have changed since.*--trust-imports once"):
        Protocol.from_toml(file)


@pytest.mark.parametrize("where", ["helper_{name}.py", "parts_{name}/inner.py"])
def test_a_change_of_a_helper_makes_the_results_of_own_methods_stale(tmp_path, where):
    name = "f" if "inner" in where else "g"
    file = folder(tmp_path, name)
    helper = tmp_path / where.format(name=name)
    helper.parent.mkdir(exist_ok=True)
    helper.write_text("VALUE = 1", encoding="utf-8")
    before = [cell.code for cell in Protocol.from_toml(file, trust_imports=True).cells()]
    helper.write_text("VALUE = 2", encoding="utf-8")
    code._file_sha256.cache_clear()
    after = [cell.code for cell in Protocol.from_toml(file, trust_imports=True).cells()]
    assert [a == b for a, b in zip(before, after, strict=True)] == [False, True]


WRONG = {
    "h": ("class Mine(BinaryRelevance):\n    def __init__(self):\n        raise KeyError('no')",
          "Mine", "learner 'Mine h' cannot be made: KeyError: 'no'"),
    "i": ("class Mine:\n    pass", "Mine", "no attribute 'get_params'.*a subclass of sklearn"),
    "j": ("from sklearn.base import BaseEstimator\nclass Mine(BaseEstimator):\n    pass",
          "Mine", "has no method fit; write it into Mine"),
    "k": ("class Mine(BinaryRelevance):\n    pass", "Mine()", "`make` must be a class, or a fun"),
    "l": ("import nothing_of_this_name", "None", "own_methods_l.py cannot be imported: Module"),
    "m": ("undefined_name", "None", "NameError.*own_methods_m.py, line 3.*mend the module"),
    "n": ("class Mine(:", "None", "SyntaxError.*line 3.*mend the module"),
    "s": ("raise SystemExit(3)", "None", "SystemExit: 3 .*own_methods_s.py, line 3"),
    "o": ("class Mine(BinaryRelevance):\n    def __init__(self, C):\n        self.C = C",
          "Mine", "missing 1 required positional argument.*parameters all have defaults"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_class_is_the_error_of_its_writer(tmp_path, name):
    text, make, message = WRONG[name]
    file = folder(tmp_path, name)
    (tmp_path / f"own_methods_{name}.py").write_text(
        "from lemll import BinaryRelevance\nfrom lemll.lab import Method, register\n"
        f"{text}\nregister(Method('Mine {name}', 'learner', {make}))\n",
        encoding="utf-8",
    )
    with pytest.raises(ProtocolError, match=message):
        Protocol.from_toml(file, trust_imports=True)


def test_an_error_in_a_method_is_the_error_of_its_writer(tmp_path):
    file = folder(tmp_path, "u")
    module = tmp_path / "own_methods_u.py"
    text = module.read_text(encoding="utf-8")
    module.write_text(
        text.replace("(BinaryRelevance):\n    pass",
                     "(BinaryRelevance):\n    def set_params(self, **given):\n        1 / 0"),
        encoding="utf-8",
    )  # fmt: skip
    run = [LEMLL, "bench", "run", str(file), "--trust-imports"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "lemll: ZeroDivisionError: division by zero (" in done.stderr
    assert "own_methods_u.py, line 13); mend your module" in done.stderr
    module.write_text(text.replace("(BinaryRelevance):\n    pass",
                                   "(BinaryRelevance):\n    def fit(self, X, y):\n        {}['k']"),
                      encoding="utf-8")  # fmt: skip
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "own_methods_u.py, line 13); mend your module" in done.stdout
    assert "KeyError: 'k' (" in done.stdout


def test_a_method_that_returns_another_shape_fails_and_is_named(tmp_path):
    file = folder(tmp_path, "p")
    (tmp_path / "own_methods_p.py").write_text(
        "from lemll import BinaryRelevance\nfrom lemll.lab import Method, register\n"
        "class Mine(BinaryRelevance):\n"
        "    def predict(self, X):\n        return super().predict(X)[:, 0]\n"
        "register(Method('Mine p', 'learner', Mine))\n",
        encoding="utf-8",
    )
    protocol = Protocol.from_toml(file, trust_imports=True)
    outcome = run_cell(protocol, next(iter(protocol.cells())))
    assert outcome.status == "failed"
    assert "predict of Mine returned an array of shape" in outcome.error["message"]
    assert "one column per label; mend the method" in outcome.error["message"]


@pytest.mark.parametrize(
    ("imports", "message"),
    [
        ('["os.path; x"]', "imports must be a list of names of modules"),
        ('"mine"', "imports must be a list of names of modules"),
        ('["../mine"]', "imports must be a list of names of modules"),
        ('["nobody"]', "has no such module; put nobody.py beside the protocol"),
    ],
)
def test_odd_imports_are_refused(tmp_path, imports, message):
    file = folder(tmp_path, "c")
    text = file.read_text(encoding="utf-8").replace('["own_methods_c"]', imports)
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ProtocolError, match=message):
        Protocol.from_toml(file, trust_imports=True)


def test_a_file_cannot_replace_a_module_that_is_known(tmp_path):
    (tmp_path / "json.py").write_text("raise SystemExit", encoding="utf-8")
    with pytest.raises(ProtocolError, match="another module has this name.*rename yours"):
        import_from_folder(["json"], tmp_path)


def test_an_enhancer_of_ones_own_is_used_by_enhance(tmp_path, monkeypatch):
    folder(tmp_path, "d")
    monkeypatch.chdir(tmp_path)
    rng = np.random.RandomState(0)
    lines = ["a,b,sea,sky", *(f"{x:.3f},{y:.3f},{int(x > 0)},1" for x, y in rng.randn(12, 2))]
    (tmp_path / "t.csv").write_text("\n".join(lines), encoding="utf-8")
    done = CliRunner().invoke(
        app,
        ["enhance", str(tmp_path / "t.csv"), "--labels", "sea,sky",
         "--method", "own_methods_d:MyEnhancer", "-o", str(tmp_path / "o.csv")],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert (tmp_path / "o.csv").read_text(encoding="utf-8").startswith("row,sea,sky")
    listed = CliRunner().invoke(app, ["bench", "methods"])
    assert "my enhancer" in listed.output


def test_init_writes_a_protocol_that_is_valid(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["bench", "init", "mine.toml"])
    assert done.exit_code == 0, done.output
    assert "next: lemll bench run mine.toml" in done.output
    protocol = Protocol.from_toml("mine.toml")
    assert len(list(protocol.cells())) == 15
    again = CliRunner().invoke(app, ["bench", "init", "mine.toml"])
    assert "exists already" in str(again.exception)
    assert "must end in .toml" in str(CliRunner().invoke(app, ["bench", "init", "x"]).exception)
