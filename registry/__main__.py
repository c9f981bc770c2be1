"""Makes `python -m strata.registry` the command `strata`."""

from strata.registry.commands.cli import main

main()
