"""The wheel installs in an empty environment and runs there, away from the sources."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# The terminal library must not read this as markup.
FOLDER = "[red]x[ :smile: demo"
pytestmark = [pytest.mark.slow, pytest.mark.long]


def run(*command, cwd):
    # The sources must not be found by a path of the tests.
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, env=outside)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check_demo(output, folder):
    """Check that the page stands alone, and that the command names it."""
    assert f"{FOLDER}/index.html" in output
    assert "corrected t-test" in output
    page = (folder / FOLDER / "index.html").read_text(encoding="utf-8")
    assert "2. Find wrong and missing tags" in page
    assert "data:image/png;base64," in page
    assert "<script" not in page
    assert "http://" not in page.replace("http-equiv", "")
    assert (folder / FOLDER / "comparison.html").is_file()


def test_the_wheel_installs_and_runs_in_an_empty_environment(tmp_path):
    quiet = ("-m", "pip", "--quiet", "--disable-pip-version-check")
    run(sys.executable, *quiet, "wheel", ROOT, "--no-deps", "--no-build-isolation",
        "--wheel-dir", tmp_path, cwd=tmp_path)  # fmt: skip
    (wheel,) = tmp_path.glob("lemll-*.whl")
    venv.create(tmp_path / "empty", with_pip=True)
    bin_folder = tmp_path / "empty" / "bin"
    run(bin_folder / "python", *quiet, "install", f"{wheel}[all]", cwd=tmp_path)
    where = "import lemll; print(lemll.__file__)"
    assert "empty" in run(bin_folder / "python", "-c", where, cwd=tmp_path)
    command = bin_folder / "lemll"
    check_demo(run(command, "demo", "--output", FOLDER, "--splits", "2", cwd=tmp_path), tmp_path)
    assert "next: lemll bench run p.toml" in run(command, "bench", "init", "p.toml", cwd=tmp_path)
    rows = [f"{i % 7},{i % 5},{'sea;sky' if i % 7 > 3 else 'town'}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,tags", *rows]), encoding="utf-8")
    run(command, "fit", "t.csv", "--tags", "tags", "--learner", "LEMLL", "-m", "t.lemll",
        cwd=tmp_path)  # fmt: skip
    run(command, "explain", "t.lemll", "t.csv", cwd=tmp_path)
    assert (tmp_path / "explain.html").exists()
