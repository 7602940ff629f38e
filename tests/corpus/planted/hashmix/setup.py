from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension("hashmix._mix", ["src/mix.c"], py_limited_api=True,
                  define_macros=[("Py_LIMITED_API", "0x030c0000")]),
    ],
    options={"bdist_wheel": {"py_limited_api": "cp312"}},
)
