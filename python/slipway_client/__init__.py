"""A rollout server of Slipway from Python, with the standard library only: single rollouts, and collections of groups for a trainer.

    from slipway_client import Client

    with Client("http://127.0.0.1:8000") as client:
        rollout = client.submit([{"role": "user", "content": "…"}], model_url="http://127.0.0.1:30000/v1")
        print(client.wait(rollout)["outcome"], client.samples(rollout))

        collection = client.collect(rows=[{"prompt": "…", "label": "…"}], model={"url": "http://127.0.0.1:30000/v1"})
        for batch in collection.batches():
            train(batch.groups)  # acknowledged when the next batch is asked for
"""

from .client import Client
from .collection import Batch, Collection
from .http import ServerError

__all__ = ["Batch", "Client", "Collection", "ServerError"]
