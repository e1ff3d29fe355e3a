"""Protocols: what they read, what they refuse, and the cells they become."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
from engine_methods import Logged, make_protocol, plan
from support import in_process

from lemll.datasets import Dataset, write_dataset
from lemll.exceptions import ProtocolError
from lemll.lab import Method, code, list_methods, methods, register
from lemll.lab.cells import Source, Splits, Tuning, data_sha256, load_source
from lemll.lab.code import code_version
from lemll.lab.methods import CHOICES, MethodSpec
from lemll.lab.protocol import Protocol, parse_protocol
from lemll.lab.runner import run
from lemll.lab.store import Store

EXAMPLES = sorted((Path(__file__).parents[2] / "protocols").glob("*.toml"))

FULL = """
name = "full"
experiment = "prediction"
datasets = ["digit-tags", "scene", {path = "mine.csv", labels = ["b"], name = "Mine"}]
metrics = ["one_error"]
control = "plain"

[methods.plain]
method = "LEMLL"
[methods."no graph"]
method = "LEMLL"
gamma = 0.0

[splits]
kind = "kfold"
n_splits = 3
random_state = 7

[tuning]
metric = "coverage"
folds = 2
[tuning.grids.plain]
alpha = [1.0, 2.0]
"""


def read(tmp_path: Path, text: str) -> Protocol:
    path = tmp_path / "p.toml"
    path.write_text(text, encoding="utf-8")
    return Protocol.from_toml(path)


def small(**options) -> Protocol:
    settings = {
        "name": "s",
        "experiment": "prediction",
        "datasets": ("digit-tags",),
        "methods": ("LEMLL",),
    }
    return Protocol(**settings | options)


def test_every_key_of_toml_arrives(tmp_path):
    protocol = read(tmp_path, FULL)
    assert protocol.name == "full"
    assert protocol.datasets == (
        Source("digit-tags"),
        Source("scene"),
        Source("Mine", str(tmp_path.resolve() / "mine.csv"), (("labels", ("b",)),)),
    )
    assert protocol.methods == (
        MethodSpec("LEMLL", "plain"),
        MethodSpec("LEMLL", "no graph", {"gamma": 0.0}),
    )
    assert protocol.splits == Splits("kfold", 3, 7)
    assert protocol.tuning == Tuning("coverage", 2, 0, {"plain": {"alpha": (1.0, 2.0)}})
    assert protocol.metrics == ("one_error",)
    assert protocol.control == "plain"


def test_defaults_are_the_papers(tmp_path):
    text = 'experiment = "prediction"\ndatasets = ["digit-tags"]\nmethods = ["MSVR", "LEMLL"]'
    protocol = read(tmp_path, text)
    assert protocol.name == "p"
    assert protocol.splits == Splits("halves", 10, 0)
    assert protocol.tuning is None
    assert protocol.control == "MSVR"
    assert protocol.metrics == (
        "hamming_loss", "ranking_loss", "one_error", "coverage", "average_precision",
    )  # fmt: skip
    recovered = small(experiment="reconstruction", datasets=("artificial",))
    assert recovered.thresholds == (0.1, 0.2, 0.3, 0.4, 0.5)
    assert recovered.metrics == ("chebyshev", "kl_divergence_pred_true", "cosine")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_protocols(path):
    assert Protocol.from_toml(path).name == path.stem
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("datsets = []", r"p.toml: unknown key 'datsets'; did you mean 'datasets'"),
        ('experiment = "prediction"', "the key 'datasets' is missing"),
        (FULL.replace("folds", "fold"), r"unknown key of \[tuning\] 'fold'; did you mean 'folds'"),
        (FULL + "seed = 1", "seed must be a list, got 1"),
        (FULL + "alhpa = [1]", "unknown parameter of LEMLL 'alhpa'; did you mean 'alpha'"),
        (FULL.replace("n_splits", "n_split"), r"unknown key of \[splits\] 'n_split'; did you mean"),
        (FULL.replace('"kfold"', '"k-fold"'), "unknown kind of splits 'k-fold'; did you mean 'kf"),
        (FULL.replace("gamma", "gama"), "unknown parameter of LEMLL 'gama'; did you mean 'gamma'"),
        (FULL.replace('"one_error"', '"onerror"'), "unknown metric of a prediction 'onerror'; did"),
        (FULL.replace('"coverage"', '"cosine"'), "unknown metric of tuning 'cosine'"),
        (FULL.replace("grids.plain", "grids.plan"), "unknown method in tuning 'plan'; did you"),
        (FULL.replace('"scene"', '"scen"'), "no data set is called 'scen'; did you mean 'scene'"),
        (FULL.replace('control = "plain"', 'control = "x"'), "unknown control 'x'"),
        (FULL.replace('"prediction"', '"predict"'), "unknown experiment 'predict'; did you mean"),
        (FULL.replace('["one_error"]', '"one_error"'), "metrics must be a list, got 'one_error'"),
        (FULL.replace('path = "mine.csv", ', ""), "a name, a path, or a table with a path, got"),
        ("splits = 3\n" + FULL.replace("[splits]", "[x]"), "unknown key 'x'"),
        ('experiment="prediction"\ndatasets=["scene"]\nmethods=3', "methods must be a list of n"),
        ('experiment="prediction"\ndatasets=["scene"]\nmethods.LEMLL=3', "must be a table of par"),
        (
            'experiment="prediction"\ndatasets=["scene"]\nmethods=["LEMLL"]\nsplits=3',
            r"splits must be a table, \[splits\], got 3",
        ),
        ("a = ", "p.toml: "),
    ],
)
def test_what_toml_may_not_say(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"thresholds": (0.1,)}, "thresholds belong to a reconstruction"),
        ({"datasets": ()}, "a protocol needs at least one data set"),
        ({"methods": ("LEMLL", "LEMLL")}, "method 'LEMLL' stands twice"),
        ({"experiment": "reconstruction", "splits": Splits()}, "splits and tuning belong to a"),
        ({"experiment": "reconstruction", "thresholds": (1.5,)}, "must lie between 0 and 1"),
        ({"experiment": "reconstruction", "methods": ("MSVR",)}, "unknown enhancer 'MSVR'"),
    ],
)
def test_what_does_not_fit_together_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        small(**options)


def test_labels_must_suit_the_experiment():
    with pytest.raises(ValueError, match="'artificial' has a label distribution, which a pred"):
        list(small(datasets=("artificial",)).cells())
    with pytest.raises(ValueError, match="'digit-tags' has logical labels, which a reconstruc"):
        list(small(experiment="reconstruction").cells())


def test_cells_are_data_sets_times_settings_times_methods():
    cells = list(make_protocol(3).cells())
    assert [str(cell) for cell in cells[:3]] == [
        "Logged A on digit-tags, halves 0",
        "Logged B on digit-tags, halves 0",
        "Logged A on digit-tags, halves 1",
    ]
    assert len({cell.id for cell in cells}) == len(cells) == 6


def test_ids_depend_on_all_that_the_result_does_and_on_nothing_else(monkeypatch):
    def first(**options):
        return next(small(**options).cells())

    plain = first()
    assert first().id == plain.id
    # Neither labels nor metrics, nor how many splits follow, make another cell.
    assert first(methods=(MethodSpec("LEMLL", "other label"),)).id == plain.id
    assert first(metrics=("one_error",)).id == plain.id
    assert first(splits=Splits("halves", 2)).id == plain.id
    others = [
        first(methods=("MSVR",)),
        first(methods=(MethodSpec("LEMLL", "", {"gamma": 0.5}),)),
        first(splits=Splits("halves", 10, 1)),
        first(splits=Splits("kfold", 10)),
        first(tuning=Tuning()),
        first(tuning=Tuning(folds=3)),
        first(tuning=Tuning(search="coarse")),
        first(tuning=Tuning(grids={"LEMLL": {"alpha": (1.0,)}})),
    ]
    assert len({cell.work for cell in [plain, *others]}) == 9
    monkeypatch.setattr(code, "_file_sha256", lambda _: "another version")
    changed = first()
    assert changed.work == plain.work
    assert changed.id != plain.id


@pytest.mark.slow
def test_ids_are_the_same_in_another_process():
    program = (
        "from lemll.lab.protocol import Protocol;"
        "p = Protocol(name='s', experiment='prediction', datasets=('digit-tags',), "
        "methods=('LEMLL',)); print(next(p.cells()).id)"
    )
    printed = in_process(program)
    assert printed.stdout.strip() == next(small().cells()).id


def test_a_parameter_that_is_set_is_not_tuned():
    tuned = small(tuning=Tuning(), methods=("LEMLL", MethodSpec("LEMLL", "fixed", {"beta": 1.0})))
    plain, fixed = list(tuned.cells())[:2]
    assert plain.grid.keys() == {"alpha", "beta", "gamma"}
    assert fixed.grid.keys() == {"alpha", "gamma"}


def test_code_of_a_method_from_elsewhere_counts():
    from lemll import LEMLL

    assert code_version(LEMLL()) != code_version(Logged())
    typed_in = type("TypedIn", (Logged,), {"__module__": "__main__"})
    assert code_version(typed_in()) not in (code_version(LEMLL()), code_version(Logged()))


def test_a_file_is_a_data_set_and_its_hash_its_content(tmp_path):
    X = np.arange(12.0).reshape(6, 2)
    Y = np.array([[0, 1], [1, 0]] * 3)
    for name, content in (("a.npz", X), ("b.npz", X), ("c.npz", X + 1)):
        write_dataset(Dataset(X=content, Y=Y), tmp_path / name)
    protocol = small(datasets=tuple(str(tmp_path / name) for name in ("a.npz", "b.npz", "c.npz")))
    assert [source.name for source in protocol.datasets] == ["a", "b", "c"]
    hashes = [load_source(source)[1] for source in protocol.datasets]
    assert hashes[0] == hashes[1] != hashes[2]


def test_the_hash_tells_sparse_data_apart_but_not_their_index_types():
    from scipy import sparse

    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.normal(size=(20, 5)) * (rng.random((20, 5)) < 0.3))
    Y = np.ones((20, 2))
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    other = X.copy()
    other.data[0] += 1
    plain, same, changed = (data_sha256(Dataset(X=x, Y=Y)) for x in (X, wide, other))
    assert plain == same != changed


def test_stratified_folds_hold_every_row_once():
    cells = list(small(splits=Splits("stratified", 3)).cells())
    assert [str(cell) for cell in cells] == [
        f"LEMLL on digit-tags, stratified {number}" for number in range(3)
    ]
    rows = [test for _, test in Splits("stratified", 3).rows(load_source(cells[0].source)[0])]
    np.testing.assert_array_equal(np.sort(np.concatenate(rows)), np.arange(1797))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("thresholds = [[0.1]]", "thresholds must be numbers, got"),
        ('thresholds = ["0.1"]', "thresholds must be numbers, got '0.1'"),
        ("thresholds = [0.1, 0.1]", "thresholds must differ"),
        ("exceptions = {a = 1}", "a must be a table"),
        ("name = 5", "name must be a text, got 5"),
        ("exceptions = {artificial = {KN = {delta = 1}}}", "did you mean 'KM'"),
        ("exceptions = {artifical = {KM = {delta = 1}}}", "did you mean 'artificial'"),
    ],
)
def test_values_of_the_wrong_type_are_named(line, message, tmp_path):
    head = 'experiment = "reconstruction"\ndatasets = ["artificial"]\nmethods = ["KM"]\n'
    with pytest.raises(ValueError, match=re.escape(message)):
        read(tmp_path, head + line)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{path = 5}", "path of a data set must be a text, got 5"),
        ('{path = "a.csv", name = 5}', "name of a data set must be a text, got 5"),
        ('{path = "a.csv", labels = {a = 1}}', "labels of a data set must be a text"),
        ('{path = "a.csv", labels = [["x"]]}', "labels of a data set must be a text"),
        ('{path = "a.csv", lables = "x"}', "did you mean 'labels'"),
    ],
)
def test_data_sets_of_the_wrong_type_are_named(entry, message, tmp_path):
    text = f'experiment = "prediction"\ndatasets = [{entry}]\nmethods = ["MSVR"]\n'
    with pytest.raises(ValueError, match=re.escape(message)):
        read(tmp_path, text)


def test_more_splits_than_anyone_runs_are_refused():
    with pytest.raises(ValueError, match="n_splits must be at most 10000, got 100000000"):
        Splits("halves", 100_000_000)
    with pytest.raises(ValueError, match="a method must be a text"):
        parse_protocol({"experiment": "x", "datasets": [], "methods": [{}]}, "p", Path())


def test_exceptions_change_one_method_on_one_set():
    protocol = plan(
        "KM",
        "Uniform",
        experiment="reconstruction",
        datasets=("artificial", "artificial-surface"),
        thresholds=(0.5,),
        exceptions={"artificial": {"KM": {"delta": 0.5}}},
    )
    deltas = {
        cell.source.name: cell.parameters["delta"]
        for cell in protocol.cells()
        if cell.method.label == "KM"
    }
    assert deltas["artificial"] == 0.5
    assert deltas["artificial-surface"] != 0.5


SHIPPED = """
experiment = "prediction"
datasets = ["digit-tags"]
splits = {n_splits = 1}
"""
OBJECTS = {"memory", "graph"}  # and an estimator, which is "weka", or an object


def every_text_parameter() -> list[tuple[str, str, str]]:
    """List all parameters of all registered methods that are not plainly numbers."""
    return [
        (method.kind, method.name, name)
        for method in list_methods()
        for name, value in method.make().get_params().items()
        if not isinstance(value, int | float)
    ]


@pytest.mark.parametrize(("kind", "method", "name"), every_text_parameter())
def test_no_parameter_takes_a_path_a_module_or_an_object_from_a_file(tmp_path, kind, method, name):
    experiment = "prediction" if kind == "learner" else "reconstruction"
    dataset = "digit-tags" if kind == "learner" else "artificial"
    for value in ('"cache"', '"os.system"', '["cache"]', "1979-05-27", '{path = "cache"}'):
        text = (
            f'experiment = "{experiment}"\ndatasets = ["{dataset}"]\n'
            f'[methods."{method}"]\n{name} = {value}'
        )
        wanted = "unknown value of parameter|is an object|takes no text|must be a number"
        with pytest.raises(ProtocolError, match=wanted):
            read(tmp_path, text)


def test_what_methods_document_as_texts_is_what_a_file_may_say():
    for method in list_methods():
        estimator = method.make()
        documented = re.findall(r"^    (\w+) : (.*\".*)$", type(estimator).__doc__, re.MULTILINE)
        for name, rule in documented:
            texts = set(re.findall(r'"([^"]*)"', rule.partition(", default")[0]))
            assert texts <= set(CHOICES[name]), (method.name, name)
    names = {name for m in list_methods() for name in m.make().get_params()}
    assert {*methods._SETTINGS} <= names
    assert CHOICES.keys() <= names
    assert not CHOICES.keys() & OBJECTS


def test_a_protocol_that_ships_a_cache_runs_no_code(tmp_path):
    (tmp_path / "cache").mkdir()
    text = f"{SHIPPED}[methods.MLFE]\nmemory = '{tmp_path / 'cache'}'"
    with pytest.raises(ProtocolError, match="'memory' of 'MLFE' is an object, which a protocol"):
        run(read(tmp_path, text), Store(tmp_path / "store"))
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        '[methods.BR]\nestimator = "sklearn.svm.SVC"',
        'methods = ["MLFE"]\n[exceptions.digit-tags.MLFE]\nmemory = "cache"',
        'methods = ["MLFE"]\n[tuning.grids.MLFE]\nmemory = ["cache"]',
        "[methods.LEMLL]\ngraph = [[0, 1], [1, 0]]",
    ],
)
def test_every_way_into_a_parameter_is_checked(tmp_path, text):
    with pytest.raises(ProtocolError, match="is an object, which a protocol file cannot give"):
        read(tmp_path, SHIPPED + text)


def test_known_texts_and_numbers_are_taken_and_python_may_give_objects(tmp_path):
    text = (
        '[methods.LEMLL]\nkernel = "rbf"\nkernel_params = {gamma = 0.5}\n'
        '[methods.BR]\nestimator = "weka"'
    )
    assert read(tmp_path, SHIPPED + text).methods[0].parameters["kernel"] == "rbf"
    made = small(methods=(MethodSpec("MLFE", "", {"memory": str(tmp_path)}),))
    assert made.methods[0].parameters["memory"] == str(tmp_path)


def test_settings_and_templates_are_checked_to_their_last_key(tmp_path):
    text = SHIPPED + '[methods.LEMLL-auto]\nestimator__kernel_params = {gamma = "variance"}\n'
    text += 'estimator__thresholds = "f1"'
    given = read(tmp_path, text).methods[0].parameters
    assert given["estimator__kernel_params"] == {"gamma": "variance"}
    with pytest.raises(ProtocolError, match="unknown value .*'estimator__kernel_params.gamma'"):
        read(tmp_path, text.replace("variance", "os.system"))
    with pytest.raises(ProtocolError, match="unknown value .*'estimator__thresholds'"):
        read(tmp_path, text.replace("f1", "os.system"))


def test_a_method_of_ones_own_says_which_texts_it_takes(tmp_path, monkeypatch):
    monkeypatch.setattr(methods, "_METHODS", dict(methods._METHODS))
    text = SHIPPED + '[methods.Mine]\nfault = "raise"'
    register(Method("Mine", "learner", Logged))
    with pytest.raises(ProtocolError, match=r"takes no text .* choices=\{'fault': \(...\)\}"):
        read(tmp_path, text)
    monkeypatch.undo()
    monkeypatch.setattr(methods, "_METHODS", dict(methods._METHODS))
    register(Method("Mine", "learner", Logged, choices={"fault": ("raise",)}))
    assert read(tmp_path, text).methods[0].parameters == {"fault": "raise"}


DEEP = 'name = "x"\nexceptions = ' + "[" * 5000 + "]" * 5000
HOSTILE = {
    "deep lists": (DEEP, "nested too deeply"),
    "deep tables": ("a = " + "{a = " * 5000 + "1" + "}" * 5000, "nested too deeply"),
    "no such home": (SHIPPED.replace("digit-tags", "~nobody-here/x.csv"), "does not exist here"),
    "no such home in a table": (
        SHIPPED.replace('"digit-tags"', '{path = "~nobody-here/x.csv"}'),
        "does not exist here",
    ),
    "long": ("# " + "x" * 2**20, "bytes, but at most 1048576 are allowed"),
    "long path": (SHIPPED.replace("digit-tags", "x" * 5000 + "/a.csv"), "."),
    "long key": (f"{'x' * 500_000} = 1", "unknown key"),
    "long number": ("a = " + "1" * 5000, "."),
    "not text": ("\x00", "."),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_end_in_one_sentence(tmp_path, kind):
    text, message = HOSTILE[kind]
    with pytest.raises(ProtocolError, match=message) as caught:
        read(tmp_path, text + '\nmethods = ["LEMLL"]')
    assert str(caught.value).startswith(f"{tmp_path / 'p.toml'}: ")
    assert len(str(caught.value)) < 3_000


def test_what_is_not_a_plain_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "fifo.toml")
    with pytest.raises(ProtocolError, match="fifo.toml: it cannot be read: it is a FIFO, not a"):
        Protocol.from_toml(tmp_path / "fifo.toml")
    with pytest.raises(ProtocolError, match="it is a device, not a plain file"):
        Protocol.from_toml("/dev/zero")
    with pytest.raises(ProtocolError, match="it is a directory, not a plain file"):
        Protocol.from_toml(tmp_path)
    with pytest.raises(ProtocolError, match="none.toml: there is no such file; give the path"):
        Protocol.from_toml(tmp_path / "none.toml")
    (tmp_path / "real.toml").write_text(SHIPPED + 'methods = ["LEMLL"]', encoding="utf-8")
    (tmp_path / "link.toml").symlink_to("real.toml")
    assert Protocol.from_toml(tmp_path / "link.toml").name == "link"
