"""The service below its routes: connections, bodies, kept answers, and forwarding to other nodes."""
