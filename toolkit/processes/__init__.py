"""Start processes that end when we do, and exchange requests and answers with each kind.

| What is started | Module | How it answers |
| --- | --- | --- |
| any command | `supervised` | by its output and its exit code |
| a program of ours, which keeps its output from other people's code | `helper_process` | JSON lines |
| a process that runs other people's code | `sealed_answers` | lines of JSON behind a secret, in a file or a socket |
| a fork of such a process | `forks` | the same, in a pipe |

Sealed answers are a file or a socket of `measure/measured_process.py`, a journal of `children`, and the output
of `measure/abilities.py`.  The race checker has a spool of its own, `race/spool.py`: its writing half imports no json
and takes no lock, since it runs in the middle of the checked program.

Runs under Python 3.9, as `builds` does, and partly in the builds that are measured: imports little.
"""
