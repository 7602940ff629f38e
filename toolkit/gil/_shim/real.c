/* The C library's own functions, which the shim interposes. */
#include "shim.h"

#include <dlfcn.h>

struct real real;

/* Take the newest version: on some systems dlsym returns the oldest pthread_cond functions, with another layout. */
static void *next(const char *name, const char *version)
{
    void *found = version ? dlvsym(RTLD_NEXT, name, version) : NULL;
    return found ? found : dlsym(RTLD_NEXT, name);
}

void find_real(void)
{
    real.cond_init = next("pthread_cond_init", "GLIBC_2.3.2");
    real.cond_destroy = next("pthread_cond_destroy", "GLIBC_2.3.2");
    real.cond_timedwait = next("pthread_cond_timedwait", "GLIBC_2.3.2");
    real.cond_wait = next("pthread_cond_wait", "GLIBC_2.3.2");
    real.cond_signal = next("pthread_cond_signal", "GLIBC_2.3.2");
    real.create = next("pthread_create", NULL);
    real.setname = next("pthread_setname_np", NULL);
    real.sem_wait = next("sem_wait", NULL);
    real.sem_timedwait = next("sem_timedwait", NULL);
    real.sem_clockwait = next("sem_clockwait", NULL);
    real.sem_trywait = next("sem_trywait", NULL);
    real.yield = next("sched_yield", NULL);
    real.kill = next("kill", NULL);
    real.mutex_unlock = next("pthread_mutex_unlock", NULL);
}
