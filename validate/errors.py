"""What can go wrong, each with the exit code of the command line; one message, what to do in it."""


class ValidateError(Exception):
    """Something the user can mend."""

    exit_code = 1


class ExperimentError(ValidateError):
    """An experiment, an option or a job of fio that makes no sense."""

    exit_code = 2


class UnsafeError(ValidateError):
    """A device that must not be touched, or not so."""

    exit_code = 3


class MissingError(ValidateError):
    """A program, a module of the kernel, a right or a place that is needed and not there."""

    exit_code = 4


class NotOursError(ValidateError):
    """What others put where ours was: it is left as it is, and nothing is to be undone."""

    exit_code = 3


class RunError(ValidateError):
    """A step that failed; what was done before it is undone."""

    exit_code = 5


class InterruptedRunError(ValidateError):
    """A signal; what was done is undone."""

    exit_code = 130
