"""The kit for the JVM, the example and the test cases in Java, compiled as a stranger would."""

from pathlib import Path

import pytest

from program_text import ran
from purgatorio_conformance.java_home import JavaNotFound, find_java
from purgatorio_conformance.subject.java_build import kit_folder

EXAMPLE = Path(__file__).parents[2] / "examples" / "jvm-kit"
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """`java`, and the classes of the kit, the example and the test cases. Tests that use it are in the group
    `jvm-kit`. Skips where there is no compiler."""
    try:
        java = find_java().java
    except JavaNotFound as missing:
        pytest.skip(str(missing))
    compiler = java.with_name("javac")
    if not compiler.exists():
        pytest.skip("a Java runtime without a compiler")
    classes = tmp_path_factory.mktemp("kit")
    sources = [*(kit_folder() / "purgatorio" / "kit").glob("*.java"), *EXAMPLE.glob("*.java")]
    sources += (Path(__file__).parent / "java").glob("*.java")
    options = ["--release", "11", "-g", "-Xlint:all", "-Werror", "-d", classes]
    done = ran([str(word) for word in (compiler, *options, *sources)])
    assert done.returncode == 0, done.stdout + done.stderr
    return java, classes
