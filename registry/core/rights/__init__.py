"""Rights: who may do what, the rules that say so, and what of a State a request may see."""
