from setuptools import Extension, setup

setup(ext_modules=[Extension("exporter._fast", ["exporter/_fast.c"])])
