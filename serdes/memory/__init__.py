"""A registry in memory, for programs under test: `RegistryClient("mock://name")`.

It answers the requests of the clients as a registry does, with the compatibility rules of `strata.compat` and without
a server: ids, versions, references, configs, modes and both deletions, in contexts.

Not here: associations, keys of encryption, exporters, access control, the import of ids, defaults and overrides of a
config, validation of rule sets, findings beside messages.
"""
