"""Development tools of moegrad: the NumPy oracle, the case generator and the comparison."""
