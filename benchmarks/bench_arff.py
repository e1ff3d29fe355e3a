"""Reading a sparse ARFF file, decompression included, against scikit-learn's pandas-free parser.

scikit-learn's side stops at coordinate lists; ours goes on to CSR features, labels and names.
"""

from __future__ import annotations

from benchmarks._measure import best, data_dir, write_json

OURS = """
data = read_arff(path)
own = data.X.data.nbytes + data.X.indices.nbytes + data.X.indptr.nbytes
result = dict(rows=len(data), csr_bytes=own)
"""
THEIRS = """
with lzma.open(path, "rt") as file:
    parsed = _arff.load(file, return_type=_arff.COO, encode_nominal=True)
result = dict(cells=len(parsed["data"][0]))
"""


def main() -> None:
    """Measure, print and keep."""
    path = data_dir() / "multilabel" / "tmc2007" / "tmc2007-500.arff.xz"
    ours = best(f"from lemll.datasets import read_arff\npath = {str(path)!r}", OURS)
    theirs = best(f"import lzma\nfrom sklearn.externals import _arff\npath = {str(path)!r}", THEIRS)
    csr = ours["result"]["csr_bytes"]
    figures = {
        "file": path.name,
        "ours_cpu_s": ours["cpu"],
        "scikit_learn_cpu_s": theirs["cpu"],
        "times_faster": theirs["cpu"] / ours["cpu"],
        "csr_bytes": csr,
        "ours_peak_over_csr": ours["bytes"] / csr,
        "scikit_learn_peak_over_csr": theirs["bytes"] / csr,
    }
    print(f"{path.name}: {ours['result']['rows']} rows, CSR {csr / 2**20:.1f} MiB")
    print(f"  ours          {ours['cpu']:.3f} s CPU, peak {ours['bytes'] / csr:.2f} x CSR")
    print(f"  scikit-learn  {theirs['cpu']:.3f} s CPU, peak {theirs['bytes'] / csr:.2f} x CSR")
    print(f"  {figures['times_faster']:.1f} times faster")
    write_json("arff", figures)
