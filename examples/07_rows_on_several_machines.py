"""
Rows on several machines, with Dask
===================================

If the rows do not fit on one machine, LEMLL runs on the blocks of Dask arrays.
"""

# %%
# A cluster has an address, ``Client("tcp://scheduler:8786")``. This one consists of threads.
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client

from lemll.dask import LEMLL as DistributedLEMLL
from lemll.datasets import load_digit_tags
from lemll.metrics import average_precision

digits = load_digit_tags()
train, test = slice(0, 1200), slice(1200, None)
client = Client(processes=False, dashboard_address="127.0.0.1:0")
X = da.from_array(digits.X[train], chunks=(400, -1))  # large data: da.from_zarr, dask.dataframe
Y = da.from_array(digits.Y[train], chunks=(400, -1))
model = DistributedLEMLL(max_iter=100).fit(X, Y)
print(f"{model.n_blocks_} blocks, proven gap {model.optimality_:.0e}, lost: {model.n_losses_}")

# %%
# Labels and degrees stay on the workers until you ask for them. New rows may be in memory.
degrees = model.label_distribution_.compute()
scores = model.decision_function(digits.X[test])
client.close()

# %%
# Neighbours are searched inside a block. So the graph differs from that of one machine, and the
# scores differ a little.
from lemll import LEMLL

alone = LEMLL().fit(digits.X[train], digits.Y[train])
single = alone.decision_function(digits.X[test])
found = {
    "three blocks": average_precision(digits.Y[test], scores),
    "one machine": average_precision(digits.Y[test], single),
}
print({name: round(value, 3) for name, value in found.items()})
agreement = np.corrcoef(degrees.ravel(), alone.label_distribution_.ravel())[0, 1]

# %%
figure, axes = plt.subplots(layout="constrained")
axes.scatter(single.ravel(), scores.ravel(), s=3)
axes.set(xlabel="score by one machine", ylabel="score by three blocks")
plt.show()
