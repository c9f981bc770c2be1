"""Compiled code is cached on disk where that is safe; `test_arrow_memory` shows that another process reuses it."""

import os

import numba
import pytest

from strata.serdes.arrow import entry_points


def test_nowhere_to_keep_compiled_code(monkeypatch):
    """Without a writable place, the decoder is compiled but not cached."""
    whole = numba.njit

    def njit(*functions, **options):  # Numba's own modules, which it imports late, decorate with it too
        if options.get("cache"):
            raise RuntimeError("no locator available")
        return whole(*functions, **options)

    monkeypatch.setattr(entry_points.numba, "njit", njit)

    assert 3 == entry_points._kept(lambda number: number + 1)(2)


@pytest.mark.parametrize(
    ("mode", "is_kept"), [pytest.param(0o700, True, id="own"), pytest.param(0o777, False, id="open to others")]
)
def test_package_in_a_zip(monkeypatch, tmp_path, mode, is_kept):
    """Code is cached in the user's own temporary folder unless others may write to it: the code will be run."""
    folder = tmp_path / f"strata-numba-{os.getuid()}"
    folder.mkdir()
    folder.chmod(mode)
    monkeypatch.setattr(entry_points, "__file__", "/shipped.zip/strata/serdes/arrow/entry_points.py")
    monkeypatch.setattr(entry_points.tempfile, "tempdir", str(tmp_path))

    assert 3 == entry_points._kept(lambda number: number + 1)(2)

    assert is_kept == any(folder.rglob("*.nbc"))
