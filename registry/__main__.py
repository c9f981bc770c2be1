"""`python -m registry` is the command `strata`."""

from registry.cli import main

main()
