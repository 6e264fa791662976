"""Errors, each with its exit code; the message says what is wrong and what to do."""


class ValidateError(Exception):
    """An error that the user can resolve."""

    exit_code = 1


class ExperimentError(ValidateError):
    """An invalid experiment, option or fio job."""

    exit_code = 2


class UnsafeError(ValidateError):
    """A device that must not be used, or not in this way."""

    exit_code = 3


class MissingError(ValidateError):
    """A program, kernel module, permission or folder that is needed and missing."""

    exit_code = 4


class NotOursError(ValidateError):
    """Content that is not ours where ours was: it is kept, and the step counts as undone."""

    exit_code = 3


class RunError(ValidateError):
    """A step that failed; the steps before it are undone."""

    exit_code = 5


class InterruptedRunError(ValidateError):
    """A signal ended the run; its steps are undone."""

    exit_code = 130
