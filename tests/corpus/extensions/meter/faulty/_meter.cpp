#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace py = pybind11;

class Meter {
public:
    void add(long more) {
        total_ += more;
    }
    long total() const {
        return total_;
    }

private:
    long total_ = 0;
};

PYBIND11_MODULE(_meter, m, py::mod_gil_not_used()) {
    py::class_<Meter>(m, "Meter")
        .def(py::init<>())
        .def("add", &Meter::add)
        .def("total", &Meter::total);
}
