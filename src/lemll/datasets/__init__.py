"""Readers and writers of data sets, the registry of the paper, generators and binarisation."""

from lemll.datasets.archive.files import read_npz, write_npz
from lemll.datasets.arff.files import read_arff, write_arff
from lemll.datasets.binarize import binarize_distribution
from lemll.datasets.dataset import Dataset
from lemll.datasets.describe import Description, describe
from lemll.datasets.files import find_reader, looks_like_a_file, read_dataset, write_dataset
from lemll.datasets.generators import (
    load_digit_tags,
    make_artificial,
    make_artificial_surface,
)
from lemll.datasets.matlab.files import read_mat
from lemll.datasets.mulan_xml import read_label_xml
from lemll.datasets.registry import (
    DatasetInfo,
    dataset_info,
    list_datasets,
    load_dataset,
    local_path,
)
from lemll.datasets.svmlight import read_svmlight
from lemll.datasets.tables.files import read_table, write_csv, write_parquet
from lemll.datasets.tables.parquet import names_its_labels

__all__ = [
    "Dataset",
    "DatasetInfo",
    "Description",
    "binarize_distribution",
    "dataset_info",
    "describe",
    "find_reader",
    "list_datasets",
    "load_dataset",
    "load_digit_tags",
    "local_path",
    "looks_like_a_file",
    "make_artificial",
    "make_artificial_surface",
    "names_its_labels",
    "read_arff",
    "read_dataset",
    "read_label_xml",
    "read_mat",
    "read_npz",
    "read_svmlight",
    "read_table",
    "write_arff",
    "write_csv",
    "write_dataset",
    "write_npz",
    "write_parquet",
]
