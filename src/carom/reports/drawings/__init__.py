"""How every model looks: a register from the model's name to a function of all frames.

A function takes `q` of shape (frames, n) and the arguments the model was built with, and returns a `Drawing`. One for a
system of your own goes to `carom.report(sol, path, drawing=my_drawing)`.
"""

from carom.reports.drawings import bodies as bodies
from carom.reports.drawings import chains as chains
from carom.reports.drawings import crystals as crystals
from carom.reports.drawings import many_bodies as many_bodies
from carom.reports.drawings import mechanisms as mechanisms
from carom.reports.drawings import rigid as rigid
from carom.reports.drawings.register import Draw as Draw
from carom.reports.drawings.register import draw as draw
from carom.reports.drawings.register import drawing as drawing
from carom.reports.drawings.register import register as register
