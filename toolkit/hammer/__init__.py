"""Call a module's compiled functions from several threads on shared objects, in processes that may crash.

| Module | What it does |
| --- | --- |
| `calls`, `targets`, `candidates` | find calls in tests and doctests, and tell which work alone and reach C code |
| `trials`, `meeting`, `stalls` | make calls from threads, which begin together or are stopped anywhere |
| `repeated_trials`, `child` | repeat many short trials in a process of the build, each in a fork |
| `trial_budget` | ends them; time that other programs take from them does not count |
| `hammering` | asks such processes, and judges |

It takes modules and a build, and knows nothing of projects to evaluate.
"""
