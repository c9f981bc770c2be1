"""The driver of Azure Key Vault."""
