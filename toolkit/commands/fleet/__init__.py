"""gilscope fleet: the hosts of a cluster; and what other commands do with a cluster and with runs of several hosts."""
