#include <Python.h>

typedef struct node {
    struct node *next;
    double value;
} Node;

static Node *free_nodes;

static Node *
take_node(void)
{
    Node *node;
    node = free_nodes;
    if (node != NULL) {
        free_nodes = node->next;
    }
    return node != NULL ? node : PyMem_Malloc(sizeof(Node));
}

static void
give_back(Node *node)
{
    node->next = free_nodes;
    free_nodes = node;
}

static PyObject *
nodes_square(PyObject *self, PyObject *number)
{
    double value = PyFloat_AsDouble(number);
    if (value == -1.0 && PyErr_Occurred()) {
        return NULL;
    }
    Node *node = take_node();
    if (node == NULL) {
        return PyErr_NoMemory();
    }
    node->value = value * value;
    PyObject *square = PyFloat_FromDouble(node->value);
    give_back(node);
    return square;
}

static PyMethodDef nodes_methods[] = {
    {"square", nodes_square, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot nodes_slots[] = {
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
    {0, NULL}};

static struct PyModuleDef nodes_module = {
    PyModuleDef_HEAD_INIT, "_nodes", NULL, 0, nodes_methods, nodes_slots, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__nodes(void)
{
    return PyModuleDef_Init(&nodes_module);
}
