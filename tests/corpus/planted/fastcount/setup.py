from setuptools import Extension, setup

setup(ext_modules=[Extension("fastcount._count", ["fastcount/_count.c"])])
