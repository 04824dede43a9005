/** Small templates of our own, each on what Python does in a way of its own. `variables` are JSON text, read by both sides. */
export interface JinjaCase {
  readonly template: string;
  readonly variables: string;
}

const one = (template: string, variables = '{}'): JinjaCase => ({ template, variables });

const numbers =
  '{"x": [1, 1.0, -0.0, 1e3, 1e16, 1e15, 1e-4, 1e-5, 0.1, 123456789012345678901, 1.5e300, 5e-324, 2.5E-7]}';

export const jinjaCases: readonly JinjaCase[] = [
  one('{% for v in x %}{{ v }} {{ v | tojson }}\n{% endfor %}', numbers),
  one(
    '{{ x | tojson }}|{{ x | tojson(indent=2) }}',
    '{"x": {"b": [1.0, {}], "10": [], "2": "é\\n\\u2028</"}}',
  ),
  one(
    '{{ x | tojson(ensure_ascii=True) }}{{ x | tojson(sort_keys=True, separators=(",", ":")) }}',
    '{"x": {"b": "🙂\\u007f", "a": true}}',
  ),
  one(
    '{{ x }} {{ [none, true, 1.0, "a\'b", "c\\"d\'"] }} {{ (1,) }} {{ {"k": (1, 2)} }}',
    '{"x": {"a": [1, "\\u00e9\\u0007\\u200b"]}}',
  ),
  one('{{ none }}{{ true }}{{ missing }}{{ missing is defined }}{{ missing | default("d") }}'),
  one(
    '{{ "  a\\u00a0\\x1f".strip() }}|{{ "\\ufeffa ".strip() }}|{{ "xxaxy".strip("xy") }}|{{ "\\n\\na\\n".lstrip("\\n") }}|',
  ),
  one(
    '{{ "a</t>b</t>c".split("</t>")[-1] }}|{{ "a b  c".split() }}|{{ "a,b,c".split(",", 1) }}|{{ "a,b,c".rsplit(",", 1) }}',
  ),
  one(
    '{{ x | length }}{{ x[0] }}{{ x[-1] }}{{ x[1:] }}{{ x[::-1] }}{{ x.find("b") }}',
    '{"x": "🙂ab"}',
  ),
  one(
    '{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 2 ** 70 }} {{ 1 + 1.0 }} {{ "a" * 3 }} {{ "a" ~ 1.0 ~ none }}',
  ),
  one(
    '{{ 1 == 1.0 }} {{ true == 1 }} {{ "1" == 1 }} {{ 1 < 2 < 3 }} {{ "b" in "abc" }} {{ "k" in {"k": 1} }} {{ 3 not in [1, 2] }}',
  ),
  one(
    '{% set ns = namespace(n=0) %}{% for i in range(5) %}{% if i == 3 %}{% break %}{% endif %}{% if i == 1 %}{% continue %}{% endif %}{% set ns.n = ns.n + i %}{{ loop.index }}{{ loop.first }}{{ loop.last }} {% endfor %}{{ ns.n }}',
  ),
  one(
    '{% set v = 1 %}{% for i in [1, 2] %}{% set v = v + i %}{{ v }}{% endfor %}{{ v }}{% if true %}{% set v = 9 %}{% endif %}{{ v }}',
  ),
  one(
    '{% for k, v in x.items() %}{{ k }}={{ v }};{% endfor %}{% for k, v in x | dictsort %}{{ k }};{% endfor %}',
    '{"x": {"b": 1, "10": 2, "2": 3}}',
  ),
  one(
    '{% macro m(a, b="d") %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m("x", b=2.0) }} {{ m() }}',
  ),
  one(
    '  {% if true %}\n  a\n  {% endif %}\nb {%- if true -%} c {% endif +%}\n{# note #}\n\td{{ "\\n" }}\n  {%+ if true %}e{% endif %}\n\n',
  ),
  one(
    '{% for m in x if m.a %}{{ m.a }}{{ loop.previtem.a if not loop.first }}{% else %}none{% endfor %}',
    '{"x": [{"a": 1}, {"a": 0}, {"a": 3}]}',
  ),
  one(
    '{{ x | selectattr("a", "equalto", 1) | list | length }}{{ x | map(attribute="a") | join(",") }}{{ x | rejectattr("b", "defined") | list }}',
    '{"x": [{"a": 1}, {"a": 2, "b": null}]}',
  ),
  one(
    '{{ x.content is string }}{{ x.n is mapping }}{{ x.l is iterable }}{{ x.f is number }}{{ true is integer }}{{ x.z is none }}',
    '{"x": {"content": "s", "n": {}, "l": [], "f": 1.0, "z": null}}',
  ),
  one('{% set b %}a {{ 1 }}\n{% endset %}[{{ b | trim }}]{% filter upper %}straße{% endfilter %}'),
  one('{{ "a\\nb\\n\\nc" | indent(2) }}|{{ "a\\nb" | indent(width=1, first=True) }}'),
  one('{{ ("a" if false) }}{{ "a" if false else "b" }}{{ not true or "x" and "y" }}'),
  one('{{ raise_exception("no: " ~ x) }}', '{"x": 1.0}'),
  one('{{ "a" + none }}'),
  one('{{ missing.field }}'),
  one('{{ x.missing.deeper }}', '{"x": {}}'),
  one('{{ [1, 2].append(3) }}'),
  one("{% generation %}a{% endgeneration %}{{ \"\\x41\\u00e9\\q\" }}{{ 'it\\'s' }}"),
  one('{% raw %}{{ a }}{% endraw %}{{ "{{" }}{{ {"a": {"b": 1}}["a"]["b"] }}'),
  one(
    '{{ x | replace("a", "b") | upper }}{{ "aXbX".replace("X", "", 1) }}{{ "ab".startswith(("x", "a")) }}',
    '{"x": "banana"}',
  ),
];
