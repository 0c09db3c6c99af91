"""Reports: one self-contained HTML file with the moving mechanism, linked plots, events and the evidence."""

from carom.reports.drawings import draw as draw
from carom.reports.drawings import drawing as drawing
from carom.reports.drawings.forces import with_forces as with_forces
from carom.reports.film import film as film
from carom.reports.page import report as report
