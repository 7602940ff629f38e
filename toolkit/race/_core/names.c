/* Interned names of special methods.  */
static struct {
    PyObject *getitem, *setitem, *delitem, *contains, *iter, *len, *qsize, *missing, *enter, *exit;
} names;

static int
names_init(void)
{
    const struct { PyObject **place; const char *text; } all[] = {
        {&names.getitem, "__getitem__"}, {&names.setitem, "__setitem__"}, {&names.delitem, "__delitem__"},
        {&names.contains, "__contains__"}, {&names.iter, "__iter__"}, {&names.len, "__len__"},
        {&names.qsize, "qsize"}, {&names.missing, "__missing__"}, {&names.enter, "__enter__"}, {&names.exit, "__exit__"},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        *all[i].place = PyUnicode_InternFromString(all[i].text);
        if (*all[i].place == NULL) {
            return -1;
        }
    }
    return 0;
}
