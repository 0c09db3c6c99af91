"""Many runs of one program: a batch takes up to twice as long to compile as a single run."""

import carom


def one_by_one(systems, states, methods, *, t1, h):
    """What `carom.simulate_batch` gives, each lane run alone; what is no list or tuple is the same for all."""
    lists = [x for x in (systems, states, methods, t1, h) if isinstance(x, (list, tuple))]
    lanes = [x if isinstance(x, (list, tuple)) else [x] * len(lists[0]) for x in (systems, states, methods, t1, h)]
    return [
        carom.simulate(system, state, method, t1=end, h=step)
        for system, state, method, end, step in zip(*lanes, strict=True)
    ]
