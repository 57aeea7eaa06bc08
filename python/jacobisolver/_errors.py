"""The exceptions and the warnings of this package."""

from __future__ import annotations

import typing

if typing.TYPE_CHECKING:
    from ._result import Result


class JacobiError(RuntimeError):
    """Is the base of all errors of this package."""


class SessionError(JacobiError):
    """Says that the launcher or its ranks could not be started, or that they have ended."""


class SolveError(JacobiError):
    """Says in the launcher's words why a problem was refused, cancelled or failed. The session goes on."""


class ToleranceError(JacobiError):
    """Says that a run ended above its tolerance. `result` has what was reached."""

    def __init__(self, text: str, result: Result) -> None:
        super().__init__(text)
        self.result = result

    def __reduce__(self) -> typing.Tuple[typing.Type[ToleranceError], typing.Tuple[str, Result]]:
        return type(self), (str(self), self.result)


class JacobiWarning(UserWarning):
    """Says what the launcher warns of."""


class ToleranceWarning(JacobiWarning):
    """Says that a run ended above its tolerance."""
