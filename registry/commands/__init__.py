"""The subcommands of `strata`, and what they share."""
