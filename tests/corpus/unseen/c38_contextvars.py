# EXPECT: clean
import contextvars
import threading

user = contextvars.ContextVar("user", default="nobody")
quota = contextvars.ContextVar("quota", default=0)


def spend(amount):
    quota.set(quota.get() - amount)
    return user.get(), quota.get()


def session(name, amounts, out):
    user.set(name)
    quota.set(100)
    for amount in amounts:
        out.append(spend(amount))


outs = [[], []]
threads = []
for name, out in zip(("ann", "bob"), outs):
    context = contextvars.copy_context()
    target = context.run
    threads.append(threading.Thread(target=target, args=(session, name, [1, 2], out)))
for t in threads:
    t.start()
for t in threads:
    t.join()
print(outs, user.get(), quota.get())
