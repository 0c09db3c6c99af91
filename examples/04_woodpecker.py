"""The woodpecker toy: error-controlled steps through impact, stick and slip [Studer2008 sec. 10.4]."""

import carom


def main(until: float = 0.15) -> carom.Solution:
    toy, state = carom.models.woodpecker()
    method = carom.Extrapolated(carom.MoreauMidpoint(), max_order=6, atol=1e-9, rtol=0.0)
    sol = carom.simulate(toy, state, method, t1=until, stepping=carom.Switching(h_min=1e-9, h_max=5e-3))
    names = ("beak", "lower sleeve", "upper sleeve")
    for event in sol.events:
        print(f"{1e3 * event.time:8.3f} ms  {names[event.contact]} {event.kind}")
    worst = sol.account.worst
    print(f"complementarity residual {worst['residual']:.1e}, deepest penetration {worst['penetration']:.1e} m")
    return sol


if __name__ == "__main__":
    sol = main()
    carom.plots.contact_forces(sol).savefig("woodpecker.png")
    carom.report(sol, "woodpecker.html")
