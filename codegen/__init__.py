"""The moegrad compiler: dialect, programs, passes and targets.

Import it as ``moegrad.codegen``; the bare name ``codegen`` is refused, because from the
repository root every class would then exist twice.
"""

if __name__ != "moegrad.codegen":
    raise ImportError(
        f"the compiler is the package 'moegrad.codegen', it was imported as {__name__!r}; install moegrad first"
    )

__version__ = "0.1.0"
