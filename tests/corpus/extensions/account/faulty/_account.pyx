# cython: freethreading_compatible = True
# cython: language_level = 3
cimport cython


cdef class Account:
    cdef double balance

    def __cinit__(self):
        self.balance = 0.0

    def pay(self, double amount):
        self.balance += amount

    def total(self):
        return self.balance
