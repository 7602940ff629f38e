#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace py = pybind11;

struct Cell {
    int value{0};
};

PYBIND11_MODULE(_cell, m, py::mod_gil_not_used()) {
    py::class_<Cell>(m, "Cell")
        .def(py::init<>())
        .def("put", [](Cell &self, int value) { self.value = value; })
        .def("take", [](Cell &self) { return self.value; });
}
