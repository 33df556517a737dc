"""The main job as a whole, from the console script: on the machine's Java, and with no Java to be seen. `.ci/run` has
it as a part of its own."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from program_text import ran

pytestmark = pytest.mark.xdist_group("spark")
SCRIPT = Path(sys.executable).with_name("purgatorio")


def without_java(folder: Path) -> dict[str, str]:
    """An environment in which no Java can be found: a PATH of links to everything but it."""
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            link = folder / program.name
            if not program.name.startswith("java") and not link.exists():
                link.symlink_to(program)
    kept = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME")}
    return {**kept, "PATH": str(folder)}


@pytest.mark.slow
@pytest.mark.parametrize("java", ["of the machine", "hidden"])
def test_the_main_job(java: str, tmp_path: Path) -> None:
    """Drive two real timers and the reference, record, judge on Spark, write the page: all of it, with status 0.

    With the machine's Java hidden, the runtime that comes from PyPI must carry netty's driver and Spark alike.
    """
    environment = dict(os.environ)
    if java == "hidden":
        links = tmp_path / "bin"
        links.mkdir()
        environment = without_java(links)
        assert shutil.which("java", path=environment["PATH"]) is None
    elif shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("this machine has no Java of its own; the other case covers it")
    report = tmp_path / "report" / "index.html"
    done = ran(
        [SCRIPT, "verify", "--operations", "200", "--report", report, "--json"], cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stderr[-4000:] + done.stdout[-2000:]
    assert "Traceback" not in done.stderr, done.stderr
    told = json.loads(done.stdout)
    assert told["verdict"] == "PASS"
    subjects = {run["subject"].split()[0] for run in told["runs"]}
    assert len(subjects) >= 3, subjects
    for run in told["runs"]:
        assert run["clauses"]["T1"]["occasions"] > 0, run["run"]
    page = report.read_text()
    assert page.lstrip().startswith("<!doctype html>")
    assert "http://" not in page.replace("http://www.w3.org/", "")
