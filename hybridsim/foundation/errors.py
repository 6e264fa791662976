"""The errors a user can cause, each with the exit code of the command line."""


class HybridsimError(Exception):
    """An error that the user can fix; printed as one clear message, never as a traceback."""

    exit_code = 1


class UsageError(HybridsimError):
    """An option or argument that is invalid."""

    exit_code = 2


class PolicyError(HybridsimError):
    """A cache policy of a user's that chose an impossible victim."""

    exit_code = 2


class ScenarioError(HybridsimError):
    """A scenario file that is wrong or contradicts itself."""

    exit_code = 2


class TraceError(HybridsimError):
    """A trace that cannot be read, with file and place."""

    exit_code = 3


class WorkloadError(TraceError):
    """A workload file that is wrong or contradicts itself."""

    exit_code = 2


class ColumnsError(TraceError):
    """Table columns that are missing or wrongly specified."""

    exit_code = 2


class RecordingError(HybridsimError):
    """A disk that cannot be recorded here, or not with these options."""

    exit_code = 2


class DeviceError(HybridsimError):
    """A device or file that cannot be served from, or not safely."""

    exit_code = 2


class MeasurementError(HybridsimError):
    """Results of a run, real or simulated, that cannot be read or compared."""

    exit_code = 3


class FitError(MeasurementError):
    """A measurement with too little data for a fit, or without figures that the model covers."""

    exit_code = 3


class RequirementError(HybridsimError):
    """A `--require` that the result does not meet."""

    exit_code = 4
