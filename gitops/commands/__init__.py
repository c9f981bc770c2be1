"""The subcommands of `strata` for schemas in Git, and what they share."""
