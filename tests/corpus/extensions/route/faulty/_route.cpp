#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <vector>

namespace py = pybind11;

class Route {
public:
    void visit(int place);
    std::size_t length() const;

private:
    std::vector<int> places_;
};

void Route::visit(int place) {
    places_.push_back(place);
}

std::size_t Route::length() const {
    return places_.size();
}

PYBIND11_MODULE(_route, m, py::mod_gil_not_used()) {
    py::class_<Route>(m, "Route")
        .def(py::init<>())
        .def("visit", &Route::visit)
        .def("length", &Route::length);
}
