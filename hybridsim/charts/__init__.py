"""What figures show, as plain data: the HTML report and `hybridsim.plot` draw the same charts."""

from hybridsim.charts.chart import Axis, Band, Bars, Chart, Heat, Line, Mark

__all__ = ["Axis", "Band", "Bars", "Chart", "Heat", "Line", "Mark"]
