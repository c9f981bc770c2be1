"""The Python session of a document's snippets: statements on standard input, their output on standard output.

Each line is an object with the `source` of one statement and the `name` to show in tracebacks. The answer has its
`output`, the `value` of an expression as a prompt shows it, and its `error` with a `traceback`.
"""

import ast
import contextlib
import io
import json
import os
import sys
import traceback
from types import ModuleType

__all__: list[str] = []


def main() -> None:
    """Answer requests until the input ends."""
    # Programs that write to the standard output themselves, such as Spark's JVM, must not write among the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # Spark pickles what is defined in `__main__` with its code.
    session = sys.modules["__main__"] = ModuleType("__main__")
    for request in sys.stdin:
        answers.write(json.dumps(_run(session, **json.loads(request))) + "\n")
        answers.flush()


def _run(session: ModuleType, *, name: str, source: str) -> dict[str, str]:
    answer = {"output": "", "value": "", "error": "", "traceback": ""}
    statement = ast.parse(source).body[0]
    with contextlib.redirect_stdout(io.StringIO()) as output:
        try:
            if isinstance(statement, ast.Expr):
                value = eval(compile(ast.Expression(statement.value), name, "eval"), session.__dict__)  # noqa: S307
                answer["value"] = "" if value is None else repr(value)
            else:
                exec(compile(ast.Module([statement], []), name, "exec"), session.__dict__)  # noqa: S102
        except Exception as error:  # noqa: BLE001 - whatever a snippet raises is its output
            own = traceback.TracebackException(type(error), error, error.__traceback__ and error.__traceback__.tb_next)
            answer |= {"error": f"{type(error).__name__}: {error}", "traceback": "".join(own.format())}
    answer["output"] = output.getvalue()
    return answer


if __name__ == "__main__":
    main()
