"""Write answers as text, JSON, HTML and figures.

terminal, ...  one file for each kind of document that the terminal prints
page           what these files share
fio_*          the output of fio, in its own forms
html           the report as one HTML file, one file a section
charts         figures as data; html and plot draw the same figures
plot           figures by matplotlib, for papers and notebooks
schemas        the JSON Schemas of all documents
"""
