from setuptools import Extension, setup

setup(ext_modules=[Extension("speedups._speed", ["speedups/_speed.c"], optional=True)])
