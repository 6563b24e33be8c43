"""Makes and joins the parts: one module a part, joined in `parts`."""
