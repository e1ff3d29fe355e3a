"""The registry: names, figures, whereabouts; and the real files against each other."""

import numpy as np
import pytest
from scipy import sparse

from lemll.datasets import (
    Dataset,
    dataset_info,
    describe,
    list_datasets,
    load_dataset,
    read_arff,
    read_mat,
    read_npz,
)
from lemll.exceptions import DatasetNotFoundError, UnknownDatasetError


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("rcv1-s1", "rcv1-s1"),
        ("RCV1SUBSET1", "rcv1-s1"),
        ("Corel16k001", "corel16k-s1"),
        ("SJA", "SJAFFE"),
        ("Yeast-spoem", "Yeast_spoem"),
        ("yeast", "yeast"),
        ("Natural Scene", "Natural_Scene"),
        ("3DFE", "SBU_3DFE"),
        ("languagelog", "llog"),
    ],
)
def test_aliases(alias, name):
    assert dataset_info(alias).name == name


def test_every_alias_leads_home_and_none_is_shared():
    seen = {}
    for info in list_datasets():
        for name in (info.name, *info.aliases):
            assert dataset_info(name) is info
            key = "".join(filter(str.isalnum, name.casefold()))
            assert seen.setdefault(key, info.name) == info.name


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownDatasetError, match="called 'bibtx'; did you mean 'bibtex'"):
        load_dataset("bibtx")
    with pytest.raises(UnknownDatasetError, match="`lemll bench datasets list` shows all names"):
        load_dataset("??")


def test_the_thirty_sets_of_the_paper_and_their_upstream_files():
    assert len(list_datasets(table="I")) == len(list_datasets(table="V")) == 15
    for info in list_datasets():
        for file in info.upstream:
            assert file.url.startswith("https://")
            assert len(file.sha256) == 64
            assert file.size > 0


def test_not_at_hand_says_where_to_put_it(monkeypatch, tmp_path):
    monkeypatch.delenv("LEMLL_DATA_DIR", raising=False)
    with pytest.raises(DatasetNotFoundError, match="not publicly available"):
        load_dataset("msra")
    with pytest.raises(DatasetNotFoundError, match=r"LEMLL_DATA_DIR/multilabel/llog/llog\.npz"):
        load_dataset("llog")
    with pytest.raises(DatasetNotFoundError, match="download_if_missing=False forbids"):
        load_dataset("yeast", download_if_missing=False, cache_dir=tmp_path)


def test_describe_counts_by_hand():
    data = Dataset(X=[[0.0], [1.0], [2.0]], Y=[[1, 0, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1]])
    summary = describe(data)
    assert (summary.examples, summary.features, summary.labels) == (3, 1, 4)
    assert summary.cardinality == 2
    assert summary.density == 0.5
    assert summary.distinct == 2
    assert summary.proportion_distinct == pytest.approx(2 / 3)
    assert summary.differences == ()
    assert describe(Dataset(X=[[0.0]], D=[[1.0]])).cardinality is None


def test_describe_tells_known_from_unknown_differences():
    few = Dataset(X=np.zeros((3, 294)), Y=np.eye(3, 6), registered="scene")
    differences = {difference.figure: difference for difference in describe(few).differences}
    assert differences["labels"].known
    assert not differences["examples"].known
    assert str(differences["labels"]) == "labels: 6 here, 5 in the paper (known)"
    assert str(differences["examples"]) == "examples: 3 here, 2407 in the paper"


def test_a_file_that_is_only_called_like_a_registered_set_is_not_compared(tmp_path):
    path = tmp_path / "yeast.npz"
    np.savez(path, X=np.eye(3), Y=np.eye(3), name="yeast")
    data = read_npz(path)
    assert data.name == "yeast"
    assert describe(data).differences == ()


def test_a_loaded_set_is_compared(tmp_path, monkeypatch):
    (tmp_path / "multilabel" / "yeast").mkdir(parents=True)
    np.savez(tmp_path / "multilabel" / "yeast" / "yeast.npz", X=np.eye(3), Y=np.eye(3))
    monkeypatch.setenv("LEMLL_DATA_DIR", str(tmp_path))
    assert describe(load_dataset("yeast")).differences


@pytest.mark.parametrize("name", [None, 5, b"yeast", ["yeast"]])
def test_a_name_must_be_text(name):
    with pytest.raises(TypeError, match="the name of a data set must be a str, got"):
        dataset_info(name)
    with pytest.raises(TypeError, match="the name of a data set must be a str, got"):
        load_dataset(name)


def test_the_28_sets_at_hand_have_the_figures_of_the_paper(data_dir):
    loaded = []
    for info in list_datasets():
        if not info.table or not info.path:
            continue
        summary = describe(load_dataset(info.name, download_if_missing=False))
        loaded.append(info.name)
        assert all(difference.known for difference in summary.differences), summary
    assert len(loaded) == 28


ARFF_AND_NPZ = {
    "bibtex": (["bibtex/bibtex.arff.xz"], None),
    "cal500": (["cal500/cal500.arff.xz"], None),
    "corel5k": (["corel5k/Corel5k-train-sparse.arff.xz", "corel5k/Corel5k-test-sparse.arff.xz"],
                "corel5k/Corel5k.xml"),
    "delicious": (["delicious/delicious.arff.xz"], None),
    "emotions": (["emotions/emotions.arff.xz"], None),
    "enron": (["enron/enron.arff.xz"], None),
    "flags": (["flags/flags.arff"], None),
    "medical": (["medical/medical.arff.xz"], None),
    "scene": (["scene/scene-train.arff.xz", "scene/scene-test.arff.xz"], "scene/scene.xml"),
    "slashdot": (["slashdot/SLASHDOT-F.arff.xz"], None),
    "tmc2007-500": (["tmc2007/tmc2007-500.arff.xz"], None),
    "yeast": (["yeast/yeast.arff.xz"], None),
}  # fmt: skip
# The NPZ of slashdot comes from another distribution of the set, which renamed one feature.
RENAMED = {"slashdot": {"classXXX": "class"}}


@pytest.mark.parametrize("name", ARFF_AND_NPZ)
def test_arff_and_npz_of_the_same_set_agree(data_dir, name):
    files, labels = ARFF_AND_NPZ[name]
    folder = data_dir / "multilabel"
    arff = read_arff([folder / file for file in files], None if labels is None else folder / labels)
    npz = load_dataset(name)
    renamed = RENAMED.get(name, {})
    assert (
        tuple(renamed.get(feature, feature) for feature in arff.feature_names) == npz.feature_names
    )
    assert arff.label_names == npz.label_names
    np.testing.assert_array_equal(arff.Y, npz.Y)
    assert sparse.issparse(arff.X) == sparse.issparse(npz.X)
    assert arff.X.shape == npz.X.shape
    assert abs(arff.X.astype(np.float32) - npz.X.astype(np.float32)).max() == 0
    if name == "scene":
        assert abs(arff.X - npz.X).max() <= 1e-15


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("corel16k-s1", "corel16k-s1/Corel16k001.mat"),
        ("rcv1-s1", "rcv1-s1/rcv1subset1_top944.mat"),
        ("rcv1-s2", "rcv1-s2/rcv1subset2_top944.mat"),
        ("tmc2007", "tmc2007/tmc2007.mat"),
    ],
)
def test_mat_and_npz_of_the_same_set_agree(data_dir, name, file):
    mat = read_mat(data_dir / "multilabel" / file)
    npz = load_dataset(name)
    np.testing.assert_array_equal(mat.Y, npz.Y)
    assert abs(sparse.csr_array(mat.X) - npz.X).max() == 0


@pytest.mark.parametrize("variable", ["LEMLL_DATA_DIR", "XDG_CACHE_HOME"])
def test_a_home_folder_of_nobody_is_named(monkeypatch, variable):
    monkeypatch.delenv("LEMLL_DATA_DIR", raising=False)
    monkeypatch.setenv(variable, "~nobody-here/data")
    with pytest.raises(DatasetNotFoundError, match=f"{variable} is '~nobody-here/data', but"):
        load_dataset("scene", download_if_missing=False)
