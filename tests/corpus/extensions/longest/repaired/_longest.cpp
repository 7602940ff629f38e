#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/critical_section.h>
#include <algorithm>

namespace py = pybind11;

PYBIND11_MODULE(_longest, m, py::mod_gil_not_used()) {
    m.def("longest", [](py::dict names) {
        std::size_t longest = 0;
        py::scoped_critical_section held(names);
        for (auto item : names) {
            longest = std::max(longest, py::len(item.first));
        }
        return longest;
    });
}
