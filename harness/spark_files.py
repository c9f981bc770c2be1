"""Local files of a small Spark, for which Hadoop starts no processes.

Hadoop starts `chmod` for each file that it writes, and `readlink` for each that it renames: a dozen processes for each
micro-batch of a stream, which are a fifth of its CPU time.
"""

import os
from pathlib import Path
from typing import Final

from harness import spark_jar

__all__ = ["LOCAL_FILES", "class_path"]

LOCAL_FILES: Final = {
    "spark.hadoop.fs.file.impl": "strata.harness.LocalFiles",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "strata.harness.LocalFiles$Checkpoints",
}
"""The settings of a session; its JVM needs the environment of `class_path`."""
_JAVA: Final = Path(__file__).with_name("jvm") / "LocalFiles.java"


def class_path(*jars: Path) -> dict[str, str]:
    """Return the environment of a JVM of Spark's that has these jars and the classes of `LOCAL_FILES`."""
    # After Spark's own jars, so that the classes of those can come from an archive.
    return {"SPARK_DIST_CLASSPATH": os.pathsep.join(map(str, [*jars, spark_jar.compiled([_JAVA])]))}
