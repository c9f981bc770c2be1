"""Backup, restore, migration and comparison of whole registries: logs, running services and export files."""
