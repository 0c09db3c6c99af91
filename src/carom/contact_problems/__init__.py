"""Contact problems on their own: read and write them in the formats of others, and solve them.

Example:
    >>> problem = carom.contact_problems.read("x.hdf5")
    >>> result = carom.contact_problems.solve(problem)
    >>> result.velocity, result.natural_map
"""

from carom.contact_problems.files import read as read
from carom.contact_problems.files import write as write
from carom.contact_problems.problem import GlobalProblem as GlobalProblem
from carom.contact_problems.problem import LocalProblem as LocalProblem
from carom.contact_problems.solving import Result as Result
from carom.contact_problems.solving import solve as solve
from carom.solvers.apgd import APGD as APGD
from carom.solvers.gauss_seidel import AcceleratedGaussSeidel as AcceleratedGaussSeidel
