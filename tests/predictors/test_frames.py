"""Frames in, frames out: names, index, and the libraries they come from."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lemll import LEMLL, LEMLLCV, MSVR
from lemll.enhancers import LEMLLEnhancer

TAGS = ["sky", "sea", "it's"]


@pytest.fixture
def arrays():
    rng = np.random.RandomState(0)
    X = rng.randn(60, 4)
    Y = (X @ rng.randn(4, 3) + 0.3 * rng.randn(60, 3) > 0).astype(int)
    return X, Y


def test_pandas_in_pandas_out_with_names_and_index(arrays):
    X, Y = arrays
    index = [f"photo {i}" for i in range(60)]
    frame = pd.DataFrame(X, columns=list("abcd"), index=index)
    tags = pd.DataFrame(Y, columns=TAGS, index=index)
    model = LEMLL().fit(frame, tags)
    plain = LEMLL().fit(X, Y)
    predicted = model.predict(frame.iloc[::-1])
    assert isinstance(predicted, pd.DataFrame)
    assert list(predicted.columns) == TAGS
    assert list(predicted.index) == index[::-1]
    np.testing.assert_array_equal(predicted.to_numpy(), plain.predict(X[::-1]))
    assert list(model.label_names_) == TAGS
    assert list(model.feature_names_in_) == list("abcd")
    degrees = model.to_frame(model.label_distribution_, frame)
    assert list(degrees.columns) == TAGS
    assert list(degrees.index) == index
    np.testing.assert_allclose(degrees.to_numpy(), plain.label_distribution_)
    assert isinstance(model.decision_function(frame), np.ndarray)


def test_polars_in_polars_out(arrays):
    X, Y = arrays
    frame = pl.DataFrame(X, schema=list("abcd"))
    tags = pl.DataFrame(Y, schema=TAGS)
    model = LEMLL().fit(frame, tags)
    predicted = model.predict(frame)
    assert isinstance(predicted, pl.DataFrame)
    assert predicted.columns == TAGS
    np.testing.assert_array_equal(predicted.to_numpy(), LEMLL().fit(X, Y).predict(X))
    assert model.to_frame(model.predict_distribution(frame)).columns == TAGS


def test_rows_without_an_index_get_an_array(arrays):
    X, Y = arrays
    model = LEMLL().fit(X, pd.DataFrame(Y, columns=TAGS))
    predicted = model.predict(X[:5])
    assert isinstance(predicted, np.ndarray)
    assert list(model.to_frame(predicted).columns) == TAGS


def test_a_frame_predicted_in_a_pipeline_has_the_index_of_its_rows_or_none(arrays):
    X, Y = arrays
    index = [f"photo {i}" for i in range(len(X))]
    frame = pd.DataFrame(X, columns=list("abcd"), index=index)
    tags = pd.DataFrame(Y, columns=TAGS, index=index)
    pipeline = make_pipeline(StandardScaler(), LEMLL()).fit(frame, tags)
    assert isinstance(pipeline.predict(frame[7:9]), np.ndarray)
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), LEMLL())
    predicted = pipeline.fit(frame, tags).predict(frame[7:9])
    assert list(predicted.index) == ["photo 7", "photo 8"]
    assert list(predicted.columns) == TAGS


@pytest.mark.parametrize("estimator", [LEMLL(), LEMLLEnhancer(), MSVR(), LEMLLCV(cv=2)])
def test_labels_with_another_index_than_the_features_are_refused(estimator, arrays):
    X, Y = arrays
    frame, tags = pd.DataFrame(X, columns=list("abcd")), pd.DataFrame(Y, columns=TAGS)
    message = r"row 0 is 0 in X and 59 in y; align them with y.loc\[X.index\]"
    with pytest.raises(ValueError, match=message):
        estimator.fit(frame, tags[::-1])
    with pytest.raises(ValueError, match="index of y must be that of X"):
        estimator.fit(frame, tags["sky"][::-1])
    # An array has no index: it belongs to the rows by its order.
    assert MSVR().fit(frame, Y[::-1]).coef_.shape == (3, 4)


def test_renamed_features_are_refused(arrays):
    X, Y = arrays
    model = LEMLL().fit(pd.DataFrame(X, columns=list("abcd")), Y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pd.DataFrame(X, columns=list("abce")))


def test_label_names_must_be_text_and_differ(arrays):
    X, Y = arrays
    with pytest.raises(ValueError, match="label columns must have text names, got 0 of type int"):
        LEMLL().fit(X, pd.DataFrame(Y))
    with pytest.raises(ValueError, match="[Dd]uplicate|unique"):
        LEMLL().fit(X, pd.DataFrame(Y, columns=["a", "a", "b"]))


def test_without_a_frame_there_is_none_to_make(arrays):
    X, Y = arrays
    model = LEMLL().fit(X, Y)
    assert list(model.label_names_) == ["y0", "y1", "y2"]
    with pytest.raises(ValueError, match="the training labels were not a frame"):
        model.to_frame(model.label_distribution_)


def test_the_enhancer_knows_the_names(arrays):
    X, Y = arrays
    enhancer = LEMLLEnhancer().fit(X, pd.DataFrame(Y, columns=TAGS))
    assert list(enhancer.label_names_) == TAGS
