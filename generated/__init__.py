"""What the compiler wrote. Never edited by hand."""
