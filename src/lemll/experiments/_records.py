"""The record of a cell, and how it stands in a file.

A record is one JSON file, ``{"sha256": "...", "record": {...}}``. The hash is of the record's
bytes as they stand in the file, so that a truncated or altered file shows itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from lemll.exceptions import StoreError

__all__ = ["Record", "Status", "decode", "encode"]

Status = Literal["done", "failed", "timeout"]

_FORMAT = 1
_HEAD = b'{"sha256":"%s","record":'
_HEAD_BYTES = len(_HEAD) - 2 + 64
_TAIL = b"}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What became of a cell.

    Attributes
    ----------
    id, work, code : str
        The cell's id, and what it is made of: the work and the version of the code.
    status : {"done", "failed", "timeout"}
        How it ended. A cell without a record is pending, or running if it is claimed.
    experiment, dataset, method, estimator : str
        What was done; the method by the protocol's label and by its registered name.
    parameters : mapping
        All parameters of the estimator.
    chosen : mapping, optional
        Those that tuning chose instead.
    setting : list
        The split's rule with its seed and number, or the threshold.
    data_sha256, rows_sha256 : str
        Hashes of the data, and of the split's rows.
    metrics : mapping of str to float
        None where a metric is not defined; the warnings say why.
    optimality : float, optional
        The fitted estimator's certificate, where it has one; the worst where it has several.
    seconds : mapping of str to float
        Wall time of fitting (with tuning) and of predicting.
    warnings : list of str
        What was warned of, once each.
    error : mapping, optional
        Type, message and traceback of a failure.
    attempt : int
        How often the cell has ended, this time included.
    finished : str
        When, UTC.
    environment : mapping
        Libraries and machine.
    outputs : mapping, optional
        SHA-256 and size of the arrays' file.
    """

    id: str
    work: str
    code: str
    status: Status
    experiment: str
    dataset: str
    method: str
    estimator: str
    parameters: Mapping[str, Any]
    chosen: Mapping[str, Any] | None
    setting: list[Any]
    data_sha256: str
    rows_sha256: str
    metrics: Mapping[str, float | None]
    optimality: float | None
    seconds: Mapping[str, float]
    warnings: list[str]
    error: Mapping[str, str] | None
    attempt: int
    finished: str
    environment: Mapping[str, Any]
    outputs: Mapping[str, Any] | None


def encode(record: Record) -> bytes:
    """Give a record the form in which it is stored."""
    content = {"format": _FORMAT, **asdict(record)}
    # NaN is no JSON: a number that is none must be stored as null, or fail here.
    body = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    return _HEAD % hashlib.sha256(body).hexdigest().encode() + body + _TAIL


def decode(content: bytes, name: str) -> Record:
    """Read a record back, if it is what was written.

    Parameters
    ----------
    content : bytes
        Of the file.
    name : str
        Of the file, for the message.

    Returns
    -------
    Record
        As it was encoded.

    Raises
    ------
    StoreError
        If it is truncated, altered, or of a format this version does not know.
    """
    body = content[_HEAD_BYTES : -len(_TAIL)]
    head = _HEAD % hashlib.sha256(body).hexdigest().encode()
    if not (content.startswith(head) and content.endswith(_TAIL)):
        raise StoreError(f"{name} is damaged: it is not what was written; its cell must run again")
    fields = json.loads(body)
    if fields.pop("format") != _FORMAT:
        raise StoreError(f"{name} was written by another version of lemll, in a format not known")
    return Record(**fields)
