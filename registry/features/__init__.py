"""What a registry can do besides: each folder is one feature of the list in `app.py`; none imports another."""
