#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <map>
#include <mutex>
#include <string>

namespace py = pybind11;

static std::map<std::string, int> seen;
static std::mutex seen_mutex;

int number_of(const std::string &name) {
    std::scoped_lock held(seen_mutex);
    auto found = seen.find(name);
    if (found != seen.end()) {
        return found->second;
    }
    int number = static_cast<int>(seen.size());
    seen.emplace(name, number);
    return number;
}

PYBIND11_MODULE(_numbering, m, py::mod_gil_not_used()) {
    m.def("number_of", &number_of);
}
