"""Readers, the registry of the paper's data sets, generators and binarisation."""

from lemll.datasets.arff import read_arff, write_arff
from lemll.datasets.dataset import Dataset
from lemll.datasets.mulan_xml import read_label_xml

__all__ = ["Dataset", "read_arff", "read_label_xml", "write_arff"]
