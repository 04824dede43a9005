"""Uses `slipway_client` as a trainer does and prints what it saw as one JSON object. Arguments: the folder of the package, the server, the same through connections that are
cut, an engine."""

import json
import sys

sys.path.insert(0, sys.argv[1])

from slipway_client import Client, ServerError

_, _, url, cut, engine = sys.argv
hour = {"null": {"duration_ms": 3_600_000}}
said = {}


def refused(call):
    try:
        call()
    except ServerError as error:
        return [error.status, error.code]


with Client(url) as client:
    messages = [{"role": "user", "content": "hello"}]
    trained = client.submit(messages, metadata={"null": {"agent_calls": 1, "reward": 0.5}}, model_url=engine)
    endless = client.submit(messages, id="endless é", metadata=hour, train=False)
    said["status"] = client.wait(trained, timeout=60)["outcome"]["status"]
    said["samples"] = client.samples(trained)
    said["cancelled"] = [receipt["rollout_id"] for receipt in client.cancel(endless)]
    said["state"] = client.wait(endless, timeout=60)["state"]
    said["refused"] = [
        refused(lambda: client.samples(endless)),
        refused(lambda: client.rollout("nobody")),
        refused(lambda: client.collect(rows=[{"no": "prompt"}])),
        refused(lambda: Client("http://127.0.0.1:9", attempts=1).collections()),
    ]

with Client(cut) as client:
    rows = [{"prompt": "hello", "label": str(at), "metadata": {"null": {"reward": at}}} for at in range(6)]
    wanted = {"rollouts": {"train": False}, "collector": {"group_size": 2, "batch_groups": 2, "start_groups": 2}}
    collection = client.collect(rows, **wanted)
    said["batches"] = []
    for version, batch in enumerate(collection.batches()):
        said["batches"].append([[group["row"], group["oldest_version"]] for group in batch.groups])
        collection.weight_version(version)
    said["end"] = [collection.document["state"], collection.document["groups_unacknowledged"]]
    busy = client.collect([{"prompt": "hello", "metadata": hour}], **wanted)
    said["paused"] = busy.pause()["state"]
    said["resumed"] = client.collection(busy.id).resume()["state"]
    busy.stop()
    said["groups"] = list(busy)
    said["all"] = [each.id == known for each, known in zip(client.collections(), (collection.id, busy.id))]

print(json.dumps(said))
