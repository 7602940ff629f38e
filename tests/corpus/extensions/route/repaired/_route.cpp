#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <mutex>
#include <vector>

namespace py = pybind11;

class Route {
public:
    void visit(int place);
    std::size_t length() const;

private:
    std::vector<int> places_;
    mutable std::mutex mutex_;
};

void Route::visit(int place) {
    std::unique_lock held(mutex_);
    places_.push_back(place);
}

std::size_t Route::length() const {
    std::unique_lock held(mutex_);
    return places_.size();
}

PYBIND11_MODULE(_route, m, py::mod_gil_not_used()) {
    py::class_<Route>(m, "Route")
        .def(py::init<>())
        .def("visit", &Route::visit)
        .def("length", &Route::length);
}
