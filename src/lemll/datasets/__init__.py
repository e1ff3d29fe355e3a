"""Readers and writers of data sets, the registry of the paper, generators and binarisation."""

from lemll.datasets.arff import read_arff, write_arff
from lemll.datasets.dataset import Dataset
from lemll.datasets.describe import binarize_distribution, describe
from lemll.datasets.files import read_dataset, write_dataset
from lemll.datasets.generators import load_digit_tags, make_artificial, make_artificial_surface
from lemll.datasets.matlab import read_mat
from lemll.datasets.npz import read_npz, write_npz
from lemll.datasets.registry import dataset_info, list_datasets, load_dataset
from lemll.datasets.svmlight import read_svmlight
from lemll.datasets.tables import read_table, write_csv, write_parquet

__all__ = [
    "Dataset",
    "binarize_distribution",
    "dataset_info",
    "describe",
    "list_datasets",
    "load_dataset",
    "load_digit_tags",
    "make_artificial",
    "make_artificial_surface",
    "read_arff",
    "read_dataset",
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
