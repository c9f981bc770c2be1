"""Makes `python -m strata.registry` the command `strata`."""

from strata.registry.cli import main

main()
