"""
Makes hub.jsonl: cases and what the reward functions of Miles say of them, run from its package.

    python -m venv peer && peer/bin/pip install sympy pylatexenc
    pip download --no-deps miles-rl==0.0.2 && unzip -q miles_rl-0.0.2-*.whl 'miles/rollout/rm_hub/*' -d wheel
    peer/bin/python make.py wheel > hub.jsonl

A line: kind, what is given (a response, or one answer), label, metadata, result. A result {"error": TYPE} stands for an exception.
"""

import importlib.util
import json
import random
import sys
import types
from pathlib import Path

hub = Path(sys.argv[1]) / "miles" / "rollout" / "rm_hub"
sys.modules["hub"] = types.ModuleType("hub")
sys.modules["hub"].__path__ = [str(hub)]


def load(name):
    spec = importlib.util.spec_from_file_location(f"hub.{name}", hub / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


maths, deepscaler, f1, gpqa, dapo = map(
    load, ["math_utils", "deepscaler", "f1", "gpqa", "math_dapo_utils"]
)
peers = {
    "mathd": lambda a, b, m: maths.mathd_normalize_answer(a),
    "plain": lambda a, b, m: maths._normalize(a),
    "boxed": lambda a, b, m: maths.extract_answer(a),
    "equal": lambda a, b, m: bool(
        maths.grade_answer_mathd(a, b) or maths.grade_answer_sympy(a, b)
    ),
    "math": lambda a, b, m: int(maths.grade_answer_verl(a, b)),
    "deepscaler": lambda a, b, m: deepscaler.get_deepscaler_rule_based_reward(a, b),
    "dapo": lambda a, b, m: dapo.compute_score(a, b),
    "f1": lambda a, b, m: f1.f1_score(a, b)[0],
    "gpqa": lambda a, b, m: gpqa.compute_gpqa_reward(a, b, m),
}

random.seed(5)
answers = r"""1/2|\frac{1}{2}|\frac12|0.5|.5|\dfrac{1}{2}|\tfrac12|2|2.0|2.|02|1,000|1000|10,000|1,000,000|-3|- 3|\text{yes}|yes|Yes|\text{ yes }|\sqrt{2}|\sqrt2|sqrt(2)|2\sqrt{3}|\sqrt{12}|\frac{\sqrt{3}}{2}|\frac{\sqrt3}{2}|\sqrt{3}/2|x=5|5|x+1|1+x|x^2-1|(x-1)(x+1)|2x+2|2(x+1)|(1,2)|(1, 2)|[1,2]|(2,1)|(1,2]|(\frac{1}{2},3)|(0.5,3)|1,2|1, 2|90^\circ|90^{\circ}|90|90 degrees|5\text{ cm}|5 cm|5|50\%|50%|50|\$5|$5$|\pi|pi|2\pi|2*pi|\frac{\pi}{2}|pi/2|0.5\pi|\infty|(-\infty, 3]|(-\infty,3)|3 million|3000000|7 3/4|7\frac{3}{4}|31/4|7.75|2/4|\frac{2}{4}|4/8|1/3|0.333|0.3333333333|5!|120|3^2|9|2^{10}|1024|2^10|10^6|1e3|\left( 1, 2 \right)|\{1,2\}|\text{(A)}|(A)|A|a|B|\text{B}|\boxed{3}|3|\ln 2|ln(2)|\log 2|x|y|xy|yx|x*y|\frac{x}{y}|x/y|\frac{x+1}{y}|(x+1)/y|a^2+b^2|b^2+a^2|(a+b)^2|a^2+2ab+b^2|\frac{1}{\sqrt{2}}|\frac{\sqrt{2}}{2}|1+\sqrt{2}|\sqrt{2}+1|3+4i|4i+3|nan|inf||12 or 13|12 and 13|12,13|5 feet|5 inches|2 hours|monday|Tuesday|\text{Tuesday}|\overline{AB}|\begin{pmatrix}1\\2\end{pmatrix}|\cos x|x^3|x**3|-\frac{1}{2}|-0.5|\frac{-1}{2}|1_000|+5|0|00|-0|99.99999999|100|1/0|0/0|((1)|1)|)(|\frac|\sqrt|\frac{|\\|\!1|1\!000|1,\!000|1\,000|\text{1} and \text{ 2}|x=y=2|ab=2|abc=2|.5\text{ m}|{.5}|{5}|{ 5 }|\mathrm{cm}|5\mathrm{cm}|3\times 4|12|3\cdot4|x\le 5|x\leq5|1:2|2:1|12:30|50 cents|\frac{3}{2} x|1.5x|\frac32x""".split(
    "|"
)
out = []
for a in answers:
    for k in ("mathd", "plain"):
        out.append(dict(kind=k, a=a))
for a in answers:
    for b in random.sample(answers, 4) + [a]:
        out.append(dict(kind="equal", a=a, b=b))
pairs = [
    ("1/2", "0.5"),
    (r"\frac{1}{2}", "0.5"),
    (r"\sqrt{12}", r"2\sqrt{3}"),
    ("x+1", "1+x"),
    ("(x-1)(x+1)", "x^2-1"),
    ("2(x+1)", "2x+2"),
    ("pi/2", r"\frac{\pi}{2}"),
    (r"\frac{1}{\sqrt{2}}", r"\frac{\sqrt{2}}{2}"),
    ("(a+b)^2", "a^2+2ab+b^2"),
    ("5!", "120"),
    ("5!", "60*2"),
    ("0.75", "3/4"),
    ("1.5", "3/2"),
    ("x*y", "yx"),
    ("7 3/4", "7.75"),
    ("2.5x", r"\frac{5}{2}x"),
    ("(1,2)", "[1,2]"),
    ("(1/2, 3)", "(0.5,3)"),
    ("(x+1,2)", "(1+x,2)"),
    ("sqrt(x^2)", "x"),
    ("x^0.5", "sqrt(x)"),
    ("1e2", "100.5-0.5"),
    ("3x^2", "3xx"),
    ("x-x", "0.0"),
    ("2x", "x2"),
    ("--2", "2.5-0.5"),
    ("2/3", "0.6667"),
    ("2^3", "8"),
    ("2^3*1.0", "8.0"),
    ("(2)(3.5)", "7.0"),
    ("ln(2)", "ln2"),
    ("e^2", "e*e"),
    ("i^2", "-1"),
    ("x^-1", "1/x"),
    ("1/x/y", "1/(xy)"),
    ("a/b*b", "a"),
]
for a, b in pairs:
    out += [dict(kind="equal", a=a, b=b), dict(kind="equal", a=b, b=a)]
resp = ["The answer is \\boxed{%s}." % a for a in answers[:40]] + [
    "no box",
    "\\boxed{1} then \\boxed{2",
    "\\boxed 5",
    "\\fbox{3}",
    "\\boxed{a{b}c}",
    "\\boxed{\\frac{1}{2}} </think> \\boxed{0.5}",
    "<think>\\boxed{1}</think> \\boxed{2}",
    "###Response \\boxed{1/2} ###Response \\boxed{3}",
]
for r in resp:
    for b in ["0.5", 0.5, "", "\\boxed{1/2}", None, "2"]:
        out.append(dict(kind="math", a=r, b=b))
        if b is not None:
            out.append(dict(kind="deepscaler", a=r, b=b))
            out.append(dict(kind="deepscaler", a="x</think>" + r, b=b))
    out.append(dict(kind="boxed", a=r))
for r in [
    "Answer: 5",
    "answer:5",
    "Answer: 1,000",
    "Answer: $5$",
    "ANSWER : \\boxed{12}",
    "Answer: 3\nAnswer: 4",
    "Answer: x = 7",
    "none",
    "Answer: 5 dollars",
    "Answer: \\frac12",
    "Answer: the 5 units",
    "Answer:\n5",
    "Answer: 5.0",
    "Answer: -4",
    "Answer: 5" + " " * 400,
    "Answer: 5" + "z" * 300,
    "Answer: \\text{8}",
    "Answer: 12 \\text{ cm}",
    "Answer: $12$ apples $13$",
    "Answer: 5<|im_end|>",
    'Final Answer: "6"',
    "Answer: \\sqrt2",
    "Answer: 0007",
]:
    for b in ["5", "5.0", "1,000", "12", "x", "", 6, "-4", "7"]:
        out.append(dict(kind="dapo", a=r, b=b))
for p, g in [
    ("hello", "hello world"),
    ("yes", "no"),
    ("yes", "Yes!"),
    ("the cat", "cat"),
    ("", ""),
    ("a b b", "b b c"),
    ("no", "maybe"),
    ("it's", "its"),
    ("x  y\tz", "z y"),
    ("An apple the", "apple"),
    ("noanswer", "noanswer"),
    ("éa the", "éa"),
]:
    out.append(dict(kind="f1", a=p, b=g))
G = [
    ("The answer is B", "B", None),
    ("Answer: c", "C", None),
    ("B is correct", "B", {"choices": ["x", "y"]}),
    ("I think option Z", "A", None),
    ("A or B? B", "b", None),
    ("final answer: D", 3, None),
    ("The answer is 42", "fortytwo", {"choices": ["41", "fortytwo", "43"]}),
    (
        "mitochondria it is",
        "mitochondria",
        {"choices": {"A": "ribosome", "B": "mitochondria"}},
    ),
    ("<think>answer is A</think> choice B", "B", None),
    ("E", 4, {"valid_letters": ["A", "B"]}),
    ("C", "", {"correct_letter": " c "}),
    ("nothing", None, {"correct_answer": "nothing"}),
    ("the word is done", "done", {}),
    ("K", "K", None),
    ("Q", "A", {"valid_letters": "QA"}),
    ("answer B", 1.7, None),
    ("answer B", -1, None),
    (None, "A", None),
    ("", "A", None),
    ("choose D", "D", {"choices": ["a", "b"]}),
    ("I choose B because", 7, {"choices": ["p", "q"], "correct_letter": "B"}),
]
for a, b, m in G:
    out.append(dict(kind="gpqa", a=a, b=b, metadata=m))


for case in out:
    given, label, metadata = case["a"], case.get("b"), case.get("metadata")
    try:
        result = peers[case["kind"]](given, label, dict(metadata) if metadata else None)
    except Exception as error:
        result = {"error": type(error).__name__}
    print(
        json.dumps([case["kind"], given, label, metadata, result], ensure_ascii=False)
    )
