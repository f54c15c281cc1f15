"""Exceptions that a user of the compiler meets. Internal faults keep their Python types."""


class MoegradError(Exception):
    """Bad input to the compiler; the message is meant for the user and needs no traceback."""


class SpecError(MoegradError):
    """A kernel specification outside the supported matrix, or a malformed key."""


class ProgramError(MoegradError):
    """A program that does not parse or verify; the message carries file, line and column."""


class LoweringError(MoegradError):
    """A valid program that a pass or a target cannot lower; the message names the pass."""


class BuildError(MoegradError):
    """A generated source that the toolchain did not build; the message carries its output."""
