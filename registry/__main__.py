"""Makes `python -m registry` the command `strata`."""

from registry.cli import main

main()
