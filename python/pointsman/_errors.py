"""Exceptions."""

from typing import Any, NoReturn


class PointsmanError(ValueError):
    """An input was refused. If one value is the cause, ``row`` (counted from zero) and ``column`` locate it.

    >>> import pointsman
    >>> try:
    ...     pointsman.Router().fit([[0.5, 0.5], [0.5, 0.6]], [["0"], ["1"]])
    ... except pointsman.PointsmanError as error:
    ...     print(error.row, error.column)
    1 prob_*
    """

    row: int | None
    column: str | None

    def __init__(self, message: str, *, row: int | None = None, column: str | None = None) -> None:
        super().__init__(message)
        self.row = row
        self.column = column


class NotFitted(PointsmanError):
    """A method was called before ``fit``. If scikit-learn is installed, it is also a ``sklearn.exceptions.NotFittedError``."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (_not_fitted_error, (str(self),))


def _not_fitted_error(message: str) -> NotFitted:
    """The exception, which is also scikit-learn's ``NotFittedError`` if that is installed."""
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return NotFitted(message)
    error: NotFitted = type("NotFitted", (NotFitted, NotFittedError), {"__module__": __name__})(message)
    return error


def not_fitted(what: object) -> NoReturn:
    """Raises :class:`NotFitted` for an object."""
    raise _not_fitted_error(f"this {type(what).__name__} is not fitted yet: call fit first")
