"""Charts as plain data; the HTML report and `hybridsim.plot` draw the same charts."""

from hybridsim.show.charts.chart import Axis, Band, Bars, Chart, Heat, Line, Mark, Ranges

__all__ = ["Axis", "Band", "Bars", "Chart", "Heat", "Line", "Mark", "Ranges"]
