"""Look the locked packages up in a database of known vulnerabilities: ``make audit``.

Exits with 0 if all of them were looked up and nothing is known, with 1 if something is known, and
with 2, and a sentence, if the database could not be asked.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

CLEAN, VULNERABLE, NOT_DONE = 0, 1, 2


def verdict(report: Mapping[str, Any]) -> tuple[int, list[str]]:
    """Turn the report of pip-audit, as JSON, into an exit code and lines to print."""
    packages = report["dependencies"]
    asked = [package for package in packages if "skip_reason" not in package]
    lines = [
        f"{package['name']} {package['version']}: {found['id']}, mended in "
        f"{', '.join(found['fix_versions']) or 'no version yet'}"
        for package in asked
        for found in package["vulns"]
    ]
    code = VULNERABLE if lines else CLEAN
    if len(asked) < len(packages):
        lines.append(
            f"not done: {len(packages) - len(asked)} of {len(packages)} packages were not looked "
            "up, because the database of vulnerabilities was not reached or does not know them; "
            "run make audit with access to it"
        )
        code = code or NOT_DONE
    elif not lines:
        lines.append(f"{len(packages)} packages looked up, no vulnerability known")
    return code, lines


def main(arguments: Sequence[str]) -> int:
    """Audit the lock files named; the first argument is the pip-audit to run."""
    program, *locks = arguments
    command = [program, "--disable-pip", "--require-hashes", "--format", "json"]
    worst = CLEAN
    for lock in locks:
        finished = subprocess.run(
            [*command, "-r", lock], capture_output=True, text=True, check=False
        )
        try:
            code, lines = verdict(json.loads(finished.stdout))
        except ValueError:
            reason = finished.stderr.strip().splitlines()[-1:] or ["no reason was given"]
            code, lines = NOT_DONE, [f"not done: pip-audit failed: {reason[0][:200]}"]
        sys.stdout.write("".join(f"{lock}: {line}\n" for line in lines))
        worst = VULNERABLE if VULNERABLE in (worst, code) else max(worst, code)
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
