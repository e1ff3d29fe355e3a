"""The record of a cell and its file format.

A record is one JSON file, ``{"sha256": "...", "record": {...}}``. The hash covers the bytes of the
record in the file, so a truncated or altered file is detected.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NoReturn

from lemll._types import SettingsView
from lemll.exceptions import StoreError

Check = Callable[[Any], bool]
Status = Literal["done", "failed", "timeout"]

_FORMAT = 1
_HEAD = b'{"sha256":"%s","record":'
_HEAD_BYTES = len(_HEAD) - 2 + 64
_TAIL = b"}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The result of a cell.

    Attributes
    ----------
    id, work, code : str
        The id of the cell, and the two hashes that give it: the work and the version of the code.
    status : {"done", "failed", "timeout"}
        The result. A cell without a record is pending, or running if it is claimed.
    experiment, dataset, method, estimator : str
        The experiment, the data set, the label of the method in the protocol, and the registered
        name of the method.
    parameters : mapping
        All parameters of the estimator.
    chosen : mapping, optional
        The parameters that the tuning selected. They replace values of `parameters`. If several
        metrics select parameters: the parameters by metric.
    setting : list
        The rule of the split, the rule that hides labels if there is one, and the seed or number
        of the split; or the threshold.
    data_sha256, rows_sha256 : str
        Hashes of the data and of the rows of the split.
    metrics : mapping of str to float
        The values of the metrics. None if a metric is not defined; the warnings give the reason.
    criterion : str, optional
        The stopping criterion of the fitted estimator: "optimality" (a certified relative gap),
        "gradient_norm" or "kkt_residual". None if it has no criterion.
    criterion_value : float, optional
        The value of the criterion. The largest one, if there are several.
    seconds : mapping of str to float
        Wall time of fitting (including tuning) and of predicting.
    warnings : list of str
        All different warnings.
    error : mapping, optional
        Type, message and traceback of a failure.
    attempt : int
        The number of times that the cell has ended, including this one.
    finished : str
        Time of the end, in UTC.
    environment : mapping
        Libraries and machine.
    outputs : mapping, optional
        SHA-256 and size of the file with the arrays.
    """

    id: str
    work: str
    code: str
    status: Status
    experiment: str
    dataset: str
    method: str
    estimator: str
    parameters: SettingsView
    chosen: SettingsView | None
    setting: list[Any]
    data_sha256: str
    rows_sha256: str
    metrics: Mapping[str, float | None]
    criterion: str | None
    criterion_value: float | None
    seconds: Mapping[str, float]
    warnings: list[str]
    error: Mapping[str, str] | None
    attempt: int
    finished: str
    environment: SettingsView
    outputs: SettingsView | None

    @property
    def hidden(self) -> str:
        """The kind and share of hidden labels; empty if none was hidden."""
        if "hide" not in self.setting:
            return ""
        first = self.setting.index("hide") + 1
        return " ".join(map(str, self.setting[first : first + 2]))

    def __str__(self) -> str:
        where = f"{self.method} on {self.dataset}, {self.setting[0]} {self.setting[-1]}"
        return f"{where}, {self.hidden} hidden" if self.hidden else where


def encode(record: Record) -> bytes:
    """Return the content of the file of a record."""
    content = {"format": _FORMAT, **asdict(record)}
    # NaN is not valid JSON. An undefined number must be stored as null; NaN fails here.
    body = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    return _HEAD % hashlib.sha256(body).hexdigest().encode() + body + _TAIL


def decode(content: bytes, cell_id: str) -> Record:
    """Read a record, and check that it was written for this cell.

    Parameters
    ----------
    content : bytes
        The content of the file.
    cell_id : str
        The id in the name of the file.

    Returns
    -------
    Record
        The record.

    Raises
    ------
    StoreError
        If the record is truncated, altered, of another cell, or of an unknown format.
    """
    name = f"{cell_id}.json"
    body = content[_HEAD_BYTES : -len(_TAIL)]
    head = _HEAD % hashlib.sha256(body).hexdigest().encode()
    if not (content.startswith(head) and content.endswith(_TAIL)):
        raise damage(name, "it is not what was written")
    try:
        fields = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise damage(name, f"it is not the JSON of a record ({error})") from error
    if not isinstance(fields, dict):
        raise damage(name, "it is not the JSON of a record")
    if fields.pop("format", None) != _FORMAT:
        raise StoreError(
            f"{name} was written by another version of lemll, in an unknown format; use that "
            "version, or another store"
        )
    _check_fields(fields, name)
    record = Record(**fields)
    # The hash proves that the content was not altered, but not that the file has the right name.
    own = hashlib.sha256(f"{record.work}{record.code}".encode()).hexdigest()
    if not record.id == own == cell_id:
        raise damage(name, "it is the record of another cell")
    return record


def damage(name: str, reason: str) -> StoreError:
    """Return the error for a file that is not what was written for its cell."""
    return StoreError(f"{name} is damaged: {reason}; its cell must run again")


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a valid number in JSON")


def _check_fields(fields: SettingsView, name: str) -> None:
    """Refuse missing and unknown fields and wrong types, even if the hash is right."""
    for field in fields.keys() ^ _CHECKS.keys():
        what = "is missing" if field in _CHECKS else "is unknown"
        raise damage(name, f"its field {field!r} {what}")
    for field, check in _CHECKS.items():
        if not check(fields[field]):
            raise damage(name, f"its field {field!r} does not have a valid value")
    done = fields["status"] == "done"
    if done != (fields["error"] is None):
        raise damage(name, "its status and its error contradict each other")


def _text(value: object) -> bool:
    return isinstance(value, str)


def _number(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _mapping(value: object) -> bool:
    return isinstance(value, dict)


def _optional(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _mapping_of(check: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _error(value: object) -> bool:
    wanted = {"type", "message", "traceback"}
    return isinstance(value, dict) and value.keys() == wanted and all(map(_text, value.values()))


def _outputs(value: object) -> bool:
    if not isinstance(value, dict) or value.keys() != {"sha256", "bytes"}:
        return False
    return _text(value["sha256"]) and _count(value["bytes"])


def _setting(value: object) -> bool:
    return isinstance(value, list) and len(value) >= 2 and _text(value[0])


_CHECKS: Mapping[str, Check] = {
    **dict.fromkeys(
        ("id", "work", "code", "experiment", "dataset", "method", "estimator", "data_sha256",
         "rows_sha256", "finished"),
        _text,
    ),
    "status": lambda value: value in ("done", "failed", "timeout"),
    "parameters": _mapping,
    "chosen": _optional(_mapping),
    "setting": _setting,
    "metrics": _mapping_of(_optional(_number)),
    "criterion": _optional(_text),
    "criterion_value": _optional(_number),
    "seconds": _mapping_of(_number),
    "warnings": lambda value: isinstance(value, list) and all(map(_text, value)),
    "error": _optional(_error),
    "attempt": _count,
    "environment": _mapping,
    "outputs": _optional(_outputs),
}  # fmt: skip
