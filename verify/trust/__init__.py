"""Whether the checks notice anything: seeded faults in the constructions, each run against the checks that concern it."""
