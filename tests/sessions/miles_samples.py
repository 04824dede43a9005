"""Reads the samples container strictly, with the standard library alone.

Takes lines of JSON with `name` and `payload` (base64) and prints one line for each: what is in it, or why it is refused.
"""

import base64
import json
import struct
import sys

WIDTHS = {"I64": 8, "F64": 8, "I32": 4, "U8": 1}
FORMATS = {"I64": "q", "F64": "d", "I32": "i", "U8": "B"}
TENSORS = {
    "tokens": ("I64", 1),
    "loss_mask": ("U8", 1),
    "rollout_log_probs": ("F64", 1),
    "rollout_routed_experts": ("I32", 3),
    "rollout_indexer_topk": ("I32", 3),
}
STATUSES = {"pending", "completed", "truncated", "aborted", "failed"}
FIELDS = {
    "response": str,
    "response_length": int,
    "status": str,
    "weight_versions": list,
    "prefix_cache_info": dict,
    "metadata": dict,
    "nulls": list,
}
META = "_samples_meta"


class Refused(Exception):
    pass


def need(condition, message):
    if not condition:
        raise Refused(message)


def unique(pairs):
    names = [name for name, _ in pairs]
    need(len(set(names)) == len(names), "a name stands twice")
    return dict(pairs)


def container(payload):
    need(len(payload) >= 8, "shorter than its length")
    (length,) = struct.unpack("<Q", payload[:8])
    need(8 + length <= len(payload), "shorter than its header")
    head = payload[8 : 8 + length]
    need(head[:1] == b"{", "the header does not begin with a brace")
    try:
        header = json.loads(head.decode("utf-8"), object_pairs_hook=unique)
    except ValueError as error:
        raise Refused("the header is not JSON") from error
    data = payload[8 + length :]
    tensors = {}
    end = 0
    for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        need(set(tensor) == {"dtype", "shape", "data_offsets"}, "fields of a tensor")
        need(tensor["dtype"] in WIDTHS, "a type that nobody expects")
        begin, until = tensor["data_offsets"]
        need(begin == end, "a hole between tensors")
        count = 1
        for size in tensor["shape"]:
            need(isinstance(size, int) and size >= 0, "a shape")
            count *= size
        need(until - begin == count * WIDTHS[tensor["dtype"]], "bytes and shape differ")
        need(until <= len(data), "shorter than its tensors")
        values = struct.unpack("<%d%s" % (count, FORMATS[tensor["dtype"]]), data[begin:until])
        tensors[name] = (tensor["dtype"], tensor["shape"], list(values))
        end = until
    need(end == len(data), "bytes behind the last tensor")
    return tensors


def samples(payload):
    tensors = container(payload)
    need(META in tensors, "no meta")
    kind, shape, values = tensors.pop(META)
    need(kind == "U8" and len(shape) == 1, "the meta is no row of bytes")
    try:
        meta = json.loads(bytes(values).decode("utf-8"))
    except ValueError as error:
        raise Refused("the meta is not JSON") from error
    need(isinstance(meta, dict), "the meta is no object")
    need(set(meta) == {"samples", "session_metadata", "empty_reason"}, "fields of the meta")
    need(isinstance(meta["samples"], list), "samples are no list")
    need(isinstance(meta["session_metadata"], dict), "metadata of the session is no object")
    need(meta["empty_reason"] in (None, "no_records", "all_truncated"), "a reason")
    need((meta["empty_reason"] is None) == bool(meta["samples"]), "a reason and samples")
    found = [sample(tensors, at, given) for at, given in enumerate(meta["samples"])]
    need(not tensors, "a tensor that belongs to no sample")
    return {"samples": found, **{key: meta[key] for key in ("session_metadata", "empty_reason")}}


def sample(tensors, at, given):
    need(isinstance(given, dict), "a sample is no object")
    need(set(FIELDS) <= set(given) <= set(FIELDS) | {"reward"}, "fields of a sample")
    for name, kind in FIELDS.items():
        need(isinstance(given[name], kind) and not isinstance(given[name], bool), name)
    need(given["status"] in STATUSES, "a status")
    need(set(given["prefix_cache_info"]) == {"cached_tokens", "total_prompt_tokens"}, "counters")
    need(set(given["nulls"]) <= set(TENSORS), "a null that is no tensor")
    read = dict(given)
    for name, (kind, rank) in TENSORS.items():
        key = "%s.%d" % (name, at)
        if name in given["nulls"]:
            read[name] = None
            continue
        need(key in tensors, "a tensor is missing")
        dtype, shape, values = tensors.pop(key)
        need(dtype == kind and len(shape) == rank, "the type of %s" % name)
        read[name] = values
    length = given["response_length"]
    need(0 <= length <= len(read["tokens"] or []), "the length of the response")
    for name in ("loss_mask", "rollout_log_probs"):
        need(read[name] is None or len(read[name]) == length, "the length of %s" % name)
    need(all(value in (0, 1) for value in read["loss_mask"] or []), "a mask")
    return read


for line in sys.stdin:
    case = json.loads(line)
    try:
        result = {"name": case["name"], "read": samples(base64.b64decode(case["payload"]))}
    except Refused as refused:
        result = {"name": case["name"], "refused": str(refused)}
    except (KeyError, TypeError, ValueError, struct.error) as error:
        result = {"name": case["name"], "refused": "malformed: %r" % error}
    print(json.dumps(result), flush=True)
