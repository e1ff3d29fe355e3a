"""Write the table of results in the README from the committed results.

``python tools/readme_results.py`` rewrites the part of README.md between the two markers. A test
checks that the README is up to date.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
SHOWN = ("Average precision", "Ranking loss", "Hamming loss", "Macro F1", "Calibration error")


def results_table() -> str:
    """Return the average ranks of results/best for some measures, one learner per row."""
    lines = (ROOT / "results/best/summary.md").read_text(encoding="utf-8").splitlines()
    start = lines.index("## Average ranks") + 2
    end = lines.index("", start)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[start:end]]
    header, table = rows[0], rows[2:]
    shown = {name: row for name in SHOWN for row in table if row[0].startswith(name)}
    learners = header[2:-1]
    counts = sorted({int(row[1]) for row in shown.values()})
    sets = " or ".join(map(str, sorted({counts[0], counts[-1]})))
    first = shown[SHOWN[0]]
    order = sorted(learners, key=lambda name: float(first[header.index(name)] or "inf"))
    made = [
        f"Average ranks on random halves of {sets} data sets (1 is best; empty: no probabilities):",
        "",
        f"| learner | {' | '.join(shown)} |",
        "|---" * (len(shown) + 1) + "|",
    ]
    for name in order:
        place = header.index(name)
        made.append(f"| {name} | {' | '.join(row[place] for row in shown.values())} |")
    return "\n".join(made)


def updated(readme: str) -> str:
    """Return the README with the present table."""
    before, rest = readme.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{results_table()}\n{END}{after}"


if __name__ == "__main__":
    path = ROOT / "README.md"
    path.write_text(updated(path.read_text(encoding="utf-8")), encoding="utf-8")
