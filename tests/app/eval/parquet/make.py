"""Makes the parquet files beside it, with pyarrow from PyPI: python make.py. What is in them the tests say."""

import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

here = Path(__file__).parent


def write(name, columns, **options):
    pq.write_table(pa.table(columns), here / f"{name}.parquet", **options)


metadata = pa.struct(
    [
        ("name", pa.string()),
        ("whole", pa.int64()),
        ("small", pa.int32()),
        ("ratio", pa.float64()),
        ("on", pa.bool_()),
        ("tags", pa.list_(pa.string())),
        ("inner", pa.struct([("depth", pa.int32())])),
        ("when", pa.timestamp("us")),
        ("day", pa.date32()),
        ("price", pa.decimal128(8, 2)),
        ("counts", pa.map_(pa.string(), pa.int64())),
    ]
)
when = datetime.datetime(2026, 2, 3, 4, 5, 6, 789000)
rows = [
    dict(name="first", whole=2**53 + 1, small=1, ratio=0.5, on=True, tags=["a", "é"], inner=dict(depth=3), when=when,
         day=when.date(), price="12.25", counts={"a": 1}),
    dict(name="second", whole=-(2**63), small=None, ratio=None, on=False, tags=[], inner=dict(depth=None), when=None,
         day=None, price=None, counts=None),
    dict(name="third", whole=7, small=-7, ratio=1e300, on=None, tags=None, inner=dict(depth=0), when=when,
         day=None, price="-0.10", counts={"b": 2, "c": 3}),
]
for row in rows:
    row["price"] = None if row["price"] is None else Decimal(row["price"])
    row["counts"] = None if row["counts"] is None else list(row["counts"].items())
write(
    "types",
    {
        "metadata": pa.array(rows, metadata),
        "system_prompt": pa.array([None, "be brief", ""]),
        "blob": pa.array([b"\xff", b"\xfe", None]),
    },
    row_group_size=2,
)
write(
    "json",
    {"metadata": pa.array(['{"whole": 9007199254740993}', '{"whole": 1}'], pa.json_(pa.string()))},
    data_page_version="2.0",
)
prompts = {"user_prompt": pa.array(["1+1", "2+2"]), "label": pa.array(["2", "4"])}
for codec in ("none", "gzip", "brotli", "zstd", "lz4"):
    write(codec, prompts, compression=codec)
write("many", {key: pa.concat_arrays([value] * 50) for key, value in prompts.items()}, row_group_size=30)
write("unsigned", {"metadata": pa.array([{"n": 2**64 - 1}], pa.struct([("n", pa.uint64())]))})
write("nan", {"metadata": pa.array([{"n": 1.0}, {"n": float("nan")}])})
write("bytes", {"user_prompt": pa.array(["a"]), "label": pa.array([b"\xff\xfe"])})
write("plain-bytes", {"user_prompt": pa.array(["a"]), "label": pa.array(["b".encode()])})
write("columns", {"User_Prompt": pa.array(["a"]), "label": pa.array(["b"])})
write("empty", {"user_prompt": pa.array([], pa.string()), "label": pa.array([], pa.string())})


class Kms(pe.KmsClient):
    def __init__(self, _config):
        super().__init__()

    def wrap_key(self, key, _name):
        return key.hex()

    def unwrap_key(self, wrapped, _name):
        return bytes.fromhex(wrapped)


factory = pe.CryptoFactory(Kms)
for name, plaintext_footer in (("encrypted", False), ("encrypted-columns", True)):
    properties = factory.file_encryption_properties(
        pe.KmsConnectionConfig(),
        pe.EncryptionConfiguration(
            footer_key="footer", column_keys={"columns": ["user_prompt", "label"]}, plaintext_footer=plaintext_footer
        ),
    )
    write(name, prompts, encryption_properties=properties)
