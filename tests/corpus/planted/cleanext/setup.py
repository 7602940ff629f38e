from setuptools import Extension, setup

setup(ext_modules=[Extension("cleanext._mix", ["cleanext/_mix.c"])])
