"""README: pip install reportgen[fast] in production."""
try:
    from lxml import etree
except ImportError:
    from xml.etree import ElementTree as etree


def report(n):
    root = etree.Element("report")
    for i in range(n):
        etree.SubElement(root, "row", number=str(i)).text = str(i * i)
    return len(etree.tostring(root))
