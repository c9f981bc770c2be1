"""Lines of NAME=VALUE have one reader, whose messages say where a mistake is and show no value."""

import pytest

from strata.properties import PropertiesRefused, read_properties


def test_settings_in_a_file(tmp_path):
    """Spaces, comments and a byte order mark do not count; a value may hold the sign; the last one of a name counts."""
    file = tmp_path / "kafka.properties"
    file.write_bytes(b"\xef\xbb\xbfa.b = 1\r\n\n# no=1\n  # no=2\npassword=x=y\na.b=2\nempty=\n")

    assert {"a.b": "2", "password": "x=y", "empty": ""} == read_properties(file)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a=1\nsecret", r"kafka.properties, line 2: expected NAME=VALUE$"),
        (b"a=1\n\n=secret", r"line 3: expected NAME=VALUE$"),
        (b"a=secret\xff", r"cannot be read as text: byte 8 is not UTF-8$"),
        (b"a=secret\n" * 200_000, r"larger than 1,048,576 bytes"),
        (None, r"kafka.properties cannot be read: No such file or directory$"),
    ],
    ids=["no value", "no name", "no text", "too large", "no file"],
)
def test_files_that_hold_something_else(tmp_path, content, says):
    """The message names the file and the line, and shows no value: it may be a secret."""
    file = tmp_path / "kafka.properties"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(PropertiesRefused, match=says) as refused:
        read_properties(file)

    assert "secret" not in str(refused.value)
