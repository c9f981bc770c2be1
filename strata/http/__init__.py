"""What every HTTP client of a registry shares: which requests are repeated, and why a certificate is refused."""
