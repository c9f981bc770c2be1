"""Compiles the Arrow codecs ahead of time, which takes 12 s of CPU time: `python -m harness.compiled_code`.

Numba keeps the code beside the package. Otherwise each process of tests that finds none compiles it for itself.
"""

from strata.serdes.arrow import entry_points

__all__: list[str] = []


if __name__ == "__main__":
    for compiled in (entry_points.run, entry_points.run_messages, entry_points.run_writer):
        compiled(0)
