"""Ready-made models, each built once in a process: some take a second to assemble."""

from functools import cache

from carom.models import registry

REQUIRED = {"granular_chain": {"masses": [1.0, 0.5, 1.0], "damping": 0.05}}


@cache
def built(model):
    """System and state of a model with its usual arguments."""
    return registry[model](**REQUIRED.get(model, {}))
