"""What `gilscope doctor --json` says of a package, made up."""


def package(name, status="ready", *, blocks=False, version="1.0", extensions=1, reasons=(), newest=()):
    return {"name": name, "version": version, "status": status, "blocks": blocks, "reasons": list(reasons),
            "newest": list(newest), "extensions": [{}] * extensions}


def told(*packages, build="3.14t", version="3.14.0", unowned=()):
    return {"build": build, "version": version, "packages": list(packages),
            "unowned_modules_that_need_the_gil": list(unowned)}
